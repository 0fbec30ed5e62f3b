package config

import "encoding/json"

// The types of this file are the YAML as it is written, with the defaults of the schema; [Config] is what it means.

type fileRoot struct {
	Version          int                    `json:"version"`
	State            fileState              `json:"state"`
	Env              fileEnv                `json:"env"`
	Routing          fileRouting            `json:"routing"`
	Harnesses        map[string]fileHarness `json:"harnesses"`
	StandingSessions fileStanding           `json:"standingSessions"`
	Channels         fileChannels           `json:"channels"`
	Service          fileService            `json:"service"`
	Webhooks         fileWebhooks           `json:"webhooks"`
	EventLog         fileEventLog           `json:"eventLog"`
}

type fileState struct {
	Root string `json:"root"`
}

type fileEnv struct {
	File string   `json:"file"`
	Pass []string `json:"pass"`
}

type fileRouting struct {
	DefaultHarness  string              `json:"defaultHarness"`
	HarnessArgs     map[string][]string `json:"harnessArgs"`
	SpawnWorkdir    string              `json:"spawnWorkdir"`
	AuthorizedUsers []string            `json:"authorizedUsers"`
	HarnessTrust    fileHarnessTrust    `json:"harnessTrust"`
	Tmux            fileTmux            `json:"tmux"`
}

type fileHarnessTrust struct {
	Enabled                 bool   `json:"enabled"`
	AcceptBypassPermissions string `json:"acceptBypassPermissions"`
}

type fileTmux struct {
	SocketName              string  `json:"socketName"`
	RemainOnExit            bool    `json:"remainOnExit"`
	ResumeOnRespawn         bool    `json:"resumeOnRespawn"`
	ResumeProbeSeconds      float64 `json:"resumeProbeSeconds"`
	HarnessKillGraceSeconds float64 `json:"harnessKillGraceSeconds"`
}

type fileHarness struct {
	Binary          string   `json:"binary"`
	Args            []string `json:"args,omitempty"`
	ResumeArgs      []string `json:"resumeArgs,omitempty"`
	CommandPrefixes []string `json:"commandPrefixes"`
	SubmitDelayMs   int      `json:"submitDelayMs"`
	Reports         string   `json:"reports"`
}

// UnmarshalJSON begins with the defaults.
func (h *fileHarness) UnmarshalJSON(b []byte) error {
	type plain fileHarness
	p := plain(defaultHarness())
	err := json.Unmarshal(b, &p)
	*h = fileHarness(p)
	return err
}

type fileStanding struct {
	Enabled  bool          `json:"enabled"`
	Sessions []fileSession `json:"sessions"`
}

type fileSession struct {
	Name        string           `json:"name"`
	Description string           `json:"description"`
	Harness     *string          `json:"harness,omitempty"`
	HarnessArgs []string         `json:"harnessArgs,omitempty"` // nil: absent
	Cwd         *string          `json:"cwd,omitempty"`
	Prompt      *string          `json:"prompt,omitempty"`
	PromptFile  *string          `json:"promptFile,omitempty"`
	AutoStart   bool             `json:"autoStart"`
	Slack       fileSessionSlack `json:"slack"`
}

// UnmarshalJSON begins with the defaults.
func (s *fileSession) UnmarshalJSON(b []byte) error {
	type plain fileSession
	p := plain(defaultSession())
	err := json.Unmarshal(b, &p)
	*s = fileSession(p)
	return err
}

type fileSessionSlack struct {
	Enabled bool   `json:"enabled"`
	Channel string `json:"channel"`
}

type fileChannels struct {
	Slack fileSlack `json:"slack"`
}

type fileSlack struct {
	Enabled             bool         `json:"enabled"`
	BotTokenEnv         string       `json:"botTokenEnv"`
	AppTokenEnv         string       `json:"appTokenEnv"`
	Channel             string       `json:"channel"`
	AuthorizedUsers     []string     `json:"authorizedUsers"`
	AllowSharedChannels bool         `json:"allowSharedChannels"`
	Command             string       `json:"command"`
	APIURL              string       `json:"apiUrl"`
	CatchUp             fileCatchUp  `json:"catchUp"`
	Create              fileCreate   `json:"create"`
	Files               fileFiles    `json:"files"`
	Replies             string       `json:"replies"`
	Receipts            fileReceipts `json:"receipts"`
}

type fileCatchUp struct {
	MaxAgeSeconds int `json:"maxAgeSeconds"`
}

type fileCreate struct {
	CwdRoots  []string `json:"cwdRoots"`
	Harnesses []string `json:"harnesses"`
}

type fileFiles struct {
	MaxMB int64 `json:"maxMB"`
}

type fileReceipts struct {
	Received string `json:"received"`
	Typed    string `json:"typed"`
	Accepted string `json:"accepted"`
	Held     string `json:"held"`
	Failed   string `json:"failed"`
	InDoubt  string `json:"inDoubt"`
}

type fileService struct {
	Enabled bool    `json:"enabled"`
	Host    string  `json:"host"`
	Port    int     `json:"port"`
	Exposed bool    `json:"exposed"`
	MCP     fileMCP `json:"mcp"`
}

type fileMCP struct {
	Enabled bool `json:"enabled"`
}

type fileWebhooks struct {
	GhWebhook fileGhWebhook `json:"ghWebhook"`
}

type fileGhWebhook struct {
	Enabled   bool   `json:"enabled"`
	Host      string `json:"host"`
	Port      int    `json:"port"`
	Path      string `json:"path"`
	SecretEnv string `json:"secretEnv"`
}

type fileEventLog struct {
	Path      string `json:"path"`
	MaxSizeMB int64  `json:"maxSizeMB"`
}

// defaults is what an absent key means. The schema says the same, for editors.
func defaults() fileRoot {
	return fileRoot{
		Version: 1,
		State:   fileState{Root: "."},
		Env:     fileEnv{Pass: []string{}},
		Routing: fileRouting{
			DefaultHarness:  "claude",
			HarnessArgs:     map[string][]string{},
			SpawnWorkdir:    ".",
			AuthorizedUsers: []string{},
			HarnessTrust:    fileHarnessTrust{Enabled: true, AcceptBypassPermissions: "auto"},
			Tmux: fileTmux{SocketName: "the-loop", RemainOnExit: true, ResumeOnRespawn: true, ResumeProbeSeconds: 2,
				HarnessKillGraceSeconds: 5},
		},
		Harnesses:        map[string]fileHarness{},
		StandingSessions: fileStanding{Sessions: []fileSession{}},
		Channels:         fileChannels{Slack: defaultSlack()},
		Service:          fileService{Enabled: true, Host: "127.0.0.1", Port: 8765, MCP: fileMCP{Enabled: true}},
		Webhooks: fileWebhooks{GhWebhook: fileGhWebhook{Host: "127.0.0.1", Port: 8787, Path: "/gh-webhook",
			SecretEnv: "THE_LOOP_GH_WEBHOOK_SECRET"}},
		EventLog: fileEventLog{MaxSizeMB: 64},
	}
}

func defaultSlack() fileSlack {
	return fileSlack{
		BotTokenEnv:     "THE_LOOP_SLACK_BOT_TOKEN",
		AppTokenEnv:     "THE_LOOP_SLACK_APP_TOKEN",
		AuthorizedUsers: []string{},
		Command:         "/the-loop",
		APIURL:          "https://slack.com/api/",
		CatchUp:         fileCatchUp{MaxAgeSeconds: 900},
		Create:          fileCreate{CwdRoots: []string{}, Harnesses: []string{}},
		Files:           fileFiles{MaxMB: 20},
		Replies:         "final",
		Receipts: fileReceipts{Received: "eyes", Typed: "keyboard", Accepted: "white_check_mark",
			Held: "hourglass_flowing_sand", Failed: "warning", InDoubt: "grey_question"},
	}
}

func defaultHarness() fileHarness {
	return fileHarness{CommandPrefixes: []string{}, SubmitDelayMs: 100, Reports: "none"}
}

func defaultSession() fileSession {
	return fileSession{AutoStart: true, Slack: fileSessionSlack{Enabled: true}}
}
