package config

import (
	"slices"
	"time"
)

// Config is a valid configuration with its defaults filled in and its paths absolute. It is never changed after it was
// loaded and may be shared. A default stands in parentheses.
type Config struct {
	Path          string   // the file it came from, absolute
	StateRoot     string   // the folder of everything that is stored (the file's own folder)
	EnvFile       string   // the agents' credentials; empty: none
	EnvPass       []string // names of variables that agents get from our own environment
	Routing       Routing
	Harnesses     map[string]Harness // declared ones only, by name
	Standing      Standing
	Slack         Slack
	Service       Service
	GitHubWebhook GitHubWebhook
	EventLog      EventLog

	sum         [32]byte // of the file's bytes
	locations   map[string]location
	harnessUses []harnessUse
}

// Routing is how agents are started.
type Routing struct {
	DefaultHarness  string              // of a session that names none (claude)
	HarnessArgs     map[string][]string // by harness, for sessions without arguments of their own
	SpawnWorkdir    string              // of a session that names none (the current folder)
	AuthorizedUsers []string            // GitHub logins; empty denies everyone
	HarnessTrust    HarnessTrust
	Tmux            Tmux
}

// HarnessTrust is what is answered for the operator at a harness's first start in a folder.
type HarnessTrust struct {
	Enabled                 bool   // (true)
	AcceptBypassPermissions string // auto, always or never (auto: when the session's arguments ask for it)
}

// Tmux is the server that holds the panes.
type Tmux struct {
	SocketName       string        // as for tmux -L (the-loop)
	RemainOnExit     bool          // (true)
	ResumeOnRespawn  bool          // (true)
	ResumeProbe      time.Duration // how long a resumed harness must live; 0: not looked at (2 s)
	HarnessKillGrace time.Duration // between TERM and KILL (5 s)
}

// Harness is an agent program of the operator's, or another binary for a built-in one.
type Harness struct {
	Binary          string        // an absolute path, or a bare name for PATH
	Args            []string      // argv of a new conversation; nil: only Binary is replaced, of a built-in harness
	ResumeArgs      []string      // argv that continues a conversation; nil: it cannot resume
	CommandPrefixes []string      // what the harness takes as a command (none)
	SubmitDelay     time.Duration // between paste and submit (100 ms)
	UsesReports     bool          // its program says what its agent said, with "the-loop report say"
}

// The placeholders of a harness's arguments. Each is an argument of its own; the third becomes as many as there are.
const (
	PlaceholderSession = "{sessionId}"
	PlaceholderPrompt  = "{prompt}"
	PlaceholderArgs    = "{harnessArgs}"
)

// Standing is the declared standing sessions.
type Standing struct {
	Enabled  bool      // the-loop start starts them (false)
	Sessions []Session // in the order of the file
}

// Session is the definition of a standing session, merged with what it inherits.
type Session struct {
	Name        string
	Description string
	Harness     string   // its own, or routing.defaultHarness
	HarnessArgs []string // its own, or routing.harnessArgs of its harness; never nil
	Cwd         string   // absolute: its own, or routing.spawnWorkdir; need not exist
	Prompt      string
	PromptFile  string // absolute; read at each start; never together with Prompt
	AutoStart   bool   // (true)
	Slack       SessionSlack
	Inherited   Inherited
	Position    Position
}

// SessionSlack is a session's place in Slack.
type SessionSlack struct {
	Enabled bool   // announce it when Slack is enabled (true)
	Channel string // its own, or channels.resolveSlack.channel
}

// Inherited says which parts of a definition were absent and came from elsewhere. An empty list is not absent.
type Inherited struct{ Harness, HarnessArgs, Cwd, Channel bool }

// Position is where a definition stands.
type Position struct {
	File string
	Line int
	Key  string // as in standingSessions.sessions[0]
}

// Slack is the Slack surface.
type Slack struct {
	Enabled             bool     // (false)
	BotTokenEnv         string   // the name of a variable (THE_LOOP_SLACK_BOT_TOKEN)
	AppTokenEnv         string   // the name of a variable (THE_LOOP_SLACK_APP_TOKEN)
	Channel             string   // C…; may be empty
	AuthorizedUsers     []string // member ids; empty denies everyone
	AllowSharedChannels bool     // (false)
	Command             string   // (/the-loop)
	APIURL              string   // ends in a slash (https://slack.com/api/)
	CatchUpMaxAge       time.Duration
	Create              CreateLimits
	FileMaxBytes        int64  // larger files are not fetched; 0: none is (20 MB)
	Replies             string // final, all or off (final)
	Receipts            Receipts
}

// CreateLimits limits what may be created from Slack.
type CreateLimits struct {
	CwdRoots  []string // absolute; empty: anywhere
	Harnesses []string // empty: any that is known
}

// Receipts are the names of emoji, all different, without colons.
type Receipts struct{ Received, Typed, Accepted, Held, Failed, InDoubt string }

// Service is the control plane.
type Service struct {
	Enabled bool   // (true)
	Host    string // loopback, unless Exposed (127.0.0.1)
	Port    int    // 0: any free one (8765)
	Exposed bool   // (false)
	MCP     bool   // (true)
}

// GitHubWebhook is the way in for GitHub's events.
type GitHubWebhook struct {
	Enabled   bool   // (false)
	Host      string // (127.0.0.1)
	Port      int    // 0: any free one (8787)
	Path      string // (/gh-webhook)
	SecretEnv string // the name of a variable (THE_LOOP_GH_WEBHOOK_SECRET)
}

// EventLog is the log of every transition.
type EventLog struct {
	Path     string // absolute (logs/events.jsonl below the state root)
	MaxBytes int64  // rotated at this size (64 MB)
}

// StandingSession gives the definition of a declared session, whether or not the block is enabled.
func (c *Config) StandingSession(name string) (Session, bool) {
	i := slices.IndexFunc(c.Standing.Sessions, func(s Session) bool { return s.Name == name })
	if i < 0 {
		return Session{}, false
	}
	return c.Standing.Sessions[i], true
}

// ProblemAt is a problem at a dotted key of this configuration, for checks that need to know more than the file, such as
// which names are recorded already. The message says what is wrong and, after a dash, what to do.
func (c *Config) ProblemAt(key, message string) Problem {
	return newProblem(c.Path, findLocation(c.locations, key), key, message)
}
