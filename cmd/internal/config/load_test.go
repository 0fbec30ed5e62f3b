package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestRefusalsNameFileLineAndKey(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, yaml, want string }{
		{"empty", "", "c.yaml:1: is empty — write version: 1 as its first line, or let `the-loop config init` write a first file"},
		{"only comments", "# nothing\n\n", "c.yaml:1: is empty — write version: 1 as its first line, or let `the-loop config init` write a first file"},
		{"a list", "- version: 1\n", "c.yaml:1: is not a block of keys — begin with version: 1"},
		{"no version", "state: {root: x}\n", "c.yaml:1: version: is missing — write version: 1 as the first line"},
		{"another version, whatever its keys", "version: 2\nnew: key\n", "c.yaml:1: version: must be 1 — this version of the-loop supports no other"},
		{"version as text", "version: \"1\"\n", "c.yaml:1: version: must be a whole number, not text — write digits, without quotes"},
		{"misspelt key", "version: 1\nstanding-sessions: {}\n", "c.yaml:2: standing-sessions: is not known — did you mean standingSessions?"},
		{"unknown key", "version: 1\nenv:\n  zzz: 1\n", "c.yaml:3: env.zzz: is not known — here there are file, pass"},
		{"key twice", "version: 1\nenv: {file: a}\nenv: {file: b}\n", "c.yaml:3: env: is written twice, first at c.yaml:2 — keep one of them"},
		{"no value", "version: 1\nchannels:\n", "c.yaml:2: channels: has no value — remove the line, or give it a block of keys"},
		{"text for a switch", "version: 1\nstandingSessions: {enabled: \"true\"}\n",
			"c.yaml:2: standingSessions.enabled: must be true or false, not text — write true or false, without quotes"},
		{"number for text", "version: 1\nstate: {root: 12}\n", "c.yaml:2: state.root: must be text, not a number — put it in quotes"},
		{"text for a list", "version: 1\nrouting: {harnessArgs: {claude: --fast}}\n",
			"c.yaml:2: routing.harnessArgs.claude: must be a list, not text — write each entry on a line of its own that begins with a dash, or [] for none"},
		{"out of range", "version: 1\nservice: {port: 70000}\n", "c.yaml:2: service.port: is out of range — use 0 to 65535"},
		{"choice", "version: 1\nchannels: {slack: {replies: some}}\n", "c.yaml:2: channels.slack.replies: must be final, all or off — choose one"},
		{"member by name", "version: 1\nchannels:\n  slack:\n    authorizedUsers: [U0123, ann]\n",
			`c.yaml:4: channels.slack.authorizedUsers[1]: "ann" is no member id — in Slack open the person's profile, choose ⋮ and then Copy member ID (U… or W…); names can be changed by their owners and are never accepted`},
		{"channel by name", "version: 1\nchannels: {slack: {channel: \"#ops\"}}\n",
			`c.yaml:2: channels.slack.channel: "#ops" is no channel id — in Slack open the channel's details; the id (C…) is at the bottom of the About tab`},
		{"emoji with colons", "version: 1\nchannels: {slack: {receipts: {held: \":zzz:\"}}}\n",
			`c.yaml:2: channels.slack.receipts.held: ":zzz:" is no emoji name — write it as Slack shows it, without the colons`},
		{"equal emoji", "version: 1\nchannels: {slack: {receipts: {held: eyes}}}\n",
			"c.yaml:2: channels.slack.receipts.held: is the same emoji as received — choose another one"},
		{"token for a name", "version: 1\nchannels: {slack: {botTokenEnv: xoxb-1234567890-abcdefghij}}\n",
			"c.yaml:2: channels.slack.botTokenEnv: must be the NAME of an environment variable — a token or secret itself never belongs in this file: put it into a variable and write the variable's name here"},
		{"token anywhere", "version: 1\nstate: {root: xapp-1-A0123-4567-abcdef}\n", "c.yaml:2: state.root: " + tokenInFileMessage},
		{"one variable for both tokens", "version: 1\nchannels: {slack: {botTokenEnv: T, appTokenEnv: T}}\n",
			"c.yaml:2: channels.slack.appTokenEnv: names the same variable as botTokenEnv — the two tokens need one each"},
		{"apiUrl", "version: 1\nchannels: {slack: {apiUrl: ftp://x/}}\n",
			`c.yaml:2: channels.slack.apiUrl: "ftp://x/" is no address of an API — write http:// or https:// and the address, without user, query and fragment`},
		{"harness name", "version: 1\nharnesses:\n  My Tool: {binary: x}\n",
			`c.yaml:3: harnesses."My Tool": is no harness name — use up to 40 small letters, digits, dashes and underscores, and begin with a letter or a digit`},
		{"harness without binary", "version: 1\nharnesses:\n  mytool: {args: []}\n", "c.yaml:3: harnesses.mytool.binary: is missing — add it"},
		{"relative binary", "version: 1\nharnesses:\n  mytool: {binary: bin/x, args: []}\n",
			`c.yaml:3: harnesses.mytool.binary: "bin/x" is no program — write an absolute path, one from ~/, or a bare name that PATH knows; arguments go into args`},
		{"unknown placeholder", "version: 1\nharnesses:\n  mytool:\n    binary: x\n    args:\n    - a\n    - \"{session}\"\n",
			`c.yaml:7: harnesses.mytool.args[1]: "{session}" is not a placeholder — use {sessionId}, {prompt} or {harnessArgs}`},
		{"prompt twice", "version: 1\nharnesses: {mytool: {binary: x, args: [\"{prompt}\", \"{prompt}\"]}}\n",
			"c.yaml:2: harnesses.mytool.args[1]: uses {prompt} a second time — once is allowed"},
		{"harnessArgs inside an argument", "version: 1\nharnesses: {mytool: {binary: x, args: [\"-a={harnessArgs}\"]}}\n",
			"c.yaml:2: harnesses.mytool.args[0]: mixes {harnessArgs} with other text — make it an argument of its own"},
		{"sessionId inside an argument", "version: 1\nharnesses: {mytool: {binary: x, args: [\"--id={sessionId}\"]}}\n",
			"c.yaml:2: harnesses.mytool.args[0]: mixes {sessionId} with other text — make it an argument of its own"},
		{"resume without an id", "version: 1\nharnesses: {mytool: {binary: x, args: [\"{sessionId}\"], resumeArgs: [-c]}}\n",
			"c.yaml:2: harnesses.mytool.resumeArgs: has no {sessionId}, so the conversation to continue is unknown — add it, or remove resumeArgs"},
		{"resumeArgs without args", "version: 1\nharnesses: {mytool: {binary: x, resumeArgs: [\"{sessionId}\"]}}\n",
			"c.yaml:2: harnesses.mytool.resumeArgs: needs args beside it — add args, or keep binary alone to replace that of a built-in harness"},
		{"no channel", "version: 1\nstandingSessions:\n  sessions:\n  - name: a\nchannels:\n  slack: {enabled: true}\n",
			"c.yaml:6: channels.slack.channel: is missing, and standingSessions.sessions[0] (line 4) has no channel of its own — add the id of a channel (C…), or slack: {enabled: false} to the session"},
		{"open service", "version: 1\nservice: {host: 0.0.0.0}\n",
			`c.yaml:2: service.host: "0.0.0.0" can be reached from other machines — use 127.0.0.1, or set service.exposed: true and put a gateway in front that authenticates`},
		{"one port for two", "version: 1\nwebhooks: {ghWebhook: {enabled: true, port: 8765}}\n",
			"c.yaml:2: webhooks.ghWebhook.port: is also service.port on the same host — choose another"},
		{"another user's home", "version: 1\nstate: {root: ~ann/x}\n", "c.yaml:2: state.root: starts at another user's home — write an absolute path"},
		{"merge key", "version: 1\nstate: &s {root: x}\nenv: {<<: *s}\n", "c.yaml:3: env: uses a merge key (<<) — write the keys out"},
		{"number as a key", "version: 1\n1: x\n", "c.yaml:2: has a key that is not plain text — put it in quotes"},
		{"two documents", "version: 1\n---\nversion: 1\n", "c.yaml:2: begins a second document — keep one, without a line of dashes in between"},
		{"bad indentation", "version: 1\nstate:\n\troot: x\n",
			"c.yaml:3: is not valid YAML (found character that cannot start any token) — check indentation, quotes and tabs here and in the line above"},
		{"not UTF-8", "version: 1\nstate: {root: \"\xff\"}\n", "c.yaml:2: is not UTF-8 text — save the file as UTF-8"},
		{"escape sequence", "version: 1\nstate: {root: \"\\e[31m\"}\n", "c.yaml:2: state.root: contains a control character — take it out"},
		{"infinite", "version: 1\nrouting: {tmux: {resumeProbeSeconds: .inf}}\n",
			"c.yaml:2: routing.tmux.resumeProbeSeconds: is not a finite number — write an ordinary one"},
		{"several, in order", "version: 1\nservice: {port: -1}\nstate: {root: \"\"}\n",
			"c.yaml:2: service.port: is out of range — use 0 to 65535\nc.yaml:3: state.root: is empty — remove the line or give it a value"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := parseText(tt.yaml)
			if c != nil || err == nil {
				t.Fatalf("accepted: %+v", c)
			}
			var refused *Error
			if !errors.As(err, &refused) {
				t.Fatalf("not an *Error: %v", err)
			}
			if diff := cmp.Diff(tt.want, strings.ReplaceAll(err.Error(), "/etc/loop/", "")); diff != "" {
				t.Errorf("message (-want +got):\n%s", diff)
			}
		})
	}
}

func TestR1_1_AnInvalidFileIsNeverPartlyApplied(t *testing.T) {
	t.Parallel()
	c, err := parseText("version: 1\nstandingSessions: {enabled: true, sessions: [{name: good}, {name: bad, colour: red}]}\n")
	if c != nil {
		t.Errorf("a part was applied: %+v", c)
	}
	var refused *Error
	if !errors.As(err, &refused) || len(refused.Problems) != 1 || refused.Problems[0].Key != "standingSessions.sessions[1].colour" {
		t.Errorf("the key is not named: %v", err)
	}
	if p := refused.Problems[0]; p.Line != 2 || p.Column != 72 {
		t.Errorf("place is %d:%d", p.Line, p.Column)
	}
}

func TestR1_2_NamesFitATmuxTargetAndAFileName(t *testing.T) {
	t.Parallel()
	for name, good := range map[string]bool{
		"a": true, "0": true, "super-visor-2": true, strings.Repeat("a", 40): true, "2024-01-01": true,
		"": false, "-a": false, "A": false, "a.b": false, "a:b": false, "a b": false, "ä": false, "a/../b": false,
		"a\n": false, strings.Repeat("a", 41): false,
	} {
		_, err := parseText(fmt.Sprintf("version: 1\nstandingSessions: {sessions: [{name: %q}]}\n", name))
		if (err == nil) != good {
			t.Errorf("%q: %v", name, err)
		}
		if err != nil && !strings.Contains(err.Error(), ":2: standingSessions.sessions[0].name: ") {
			t.Errorf("%q: key and line are not named: %v", name, err)
		}
	}
	mustParse(t, "version: 1\nstandingSessions: {sessions: [{name: 2024-01-01}]}\n") // YAML would call this a date
}

func TestR1_3_EqualNamesAreRefusedWithBothPositions(t *testing.T) {
	t.Parallel()
	_, err := parseText("version: 1\nstandingSessions:\n  sessions:\n  - name: a\n  - name: b\n  - name: a\n  - name: a\n")
	want := `/etc/loop/c.yaml:6: standingSessions.sessions[2].name: "a" is already the name of standingSessions.sessions[0].name at /etc/loop/c.yaml:4 — give one of them another name
/etc/loop/c.yaml:7: standingSessions.sessions[3].name: "a" is already the name of standingSessions.sessions[0].name at /etc/loop/c.yaml:4 — give one of them another name`
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v", err)
	}
}

func TestR1_4_AbsentInheritsAndEmptyDoesNot(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
version: 1
routing:
  defaultHarness: codex
  harnessArgs: {codex: [--a, --b], claude: [--c]}
  spawnWorkdir: src
standingSessions:
  sessions:
  - name: bare
  - {name: none, harnessArgs: []}
  - {name: own, harnessArgs: [--x]}
  - {name: other, harness: claude, cwd: api}
  - {name: argless, harness: opencode, cwd: ~/y, promptFile: p.md, autoStart: false}
`)
	type row struct {
		Harness, Cwd string
		Args         []string
		AutoStart    bool
	}
	want := map[string]row{
		"bare":    {"codex", "/w/src", []string{"--a", "--b"}, true},
		"none":    {"codex", "/w/src", []string{}, true},
		"own":     {"codex", "/w/src", []string{"--x"}, true},
		"other":   {"claude", "/w/src/api", []string{"--c"}, true},
		"argless": {"opencode", "/home/op/y", []string{}, false},
	}
	got := map[string]row{}
	for _, s := range c.Standing.Sessions {
		got[s.Name] = row{s.Harness, s.Cwd, s.HarnessArgs, s.AutoStart}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions (-want +got):\n%s", diff)
	}
	none, _ := c.StandingSession("none")
	bare, _ := c.StandingSession("bare")
	if none.Inherited.HarnessArgs || !bare.Inherited.HarnessArgs {
		t.Error("it cannot be told which of the two inherits")
	}
	last, _ := c.StandingSession("argless")
	if last.PromptFile != "/etc/loop/p.md" || last.Position != (Position{"/etc/loop/c.yaml", 13, "standingSessions.sessions[4]"}) {
		t.Errorf("last: %+v", last)
	}
	if _, there := c.StandingSession("absent"); there {
		t.Error("a session was made up")
	}
}

func TestR1_5_PromptAndPromptFileTogetherAreRefused(t *testing.T) {
	t.Parallel()
	_, err := parseText("version: 1\nstandingSessions:\n  sessions:\n  - name: a\n    prompt: \"\"\n    promptFile: p.md\n")
	want := "/etc/loop/c.yaml:6: standingSessions.sessions[0].promptFile: cannot be used together with prompt (line 5) — keep one of the two"
	if err == nil || err.Error() != want {
		t.Errorf("got:\n%v", err)
	}
}

func TestR1_6_AnUnreadablePromptFileDoesNotRefuseTheFile(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "version: 1\nstandingSessions: {sessions: [{name: a, promptFile: /nowhere/p.md}, {name: b}]}\n")
	if len(c.Standing.Sessions) != 2 {
		t.Errorf("sessions: %+v", c.Standing.Sessions)
	}
}

func TestRelativePathsAreResolved(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
version: 1
state: {root: ../state}
env: {file: agents.env}
harnesses: {t: {binary: ~/bin/t, args: []}, u: {binary: u, args: []}}
channels: {slack: {apiUrl: "http://127.0.0.1:1/api", create: {cwdRoots: ["~", /srv/x/]}}}
`)
	got := []string{c.StateRoot, c.EnvFile, c.Routing.SpawnWorkdir, c.EventLog.Path, c.Harnesses["t"].Binary, c.Harnesses["u"].Binary,
		c.Slack.APIURL, c.Slack.Create.CwdRoots[0], c.Slack.Create.CwdRoots[1]}
	want := []string{"/etc/state", "/etc/loop/agents.env", "/w", "/etc/state/logs/events.jsonl", "/home/op/bin/t", "u",
		"http://127.0.0.1:1/api/", "/home/op", "/srv/x"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("paths (-want +got):\n%s", diff)
	}
}

func TestDefaultConfig(t *testing.T) {
	t.Parallel()
	want := &Config{
		Path: "/etc/loop/c.yaml", StateRoot: "/etc/loop", EnvPass: []string{},
		Routing: Routing{DefaultHarness: "claude", HarnessArgs: map[string][]string{}, SpawnWorkdir: "/w", AuthorizedUsers: []string{},
			HarnessTrust: HarnessTrust{true, "auto"}, Tmux: Tmux{"the-loop", true, true, 2 * time.Second, 5 * time.Second}},
		Harnesses: map[string]Harness{},
		Slack: Slack{BotTokenEnv: "THE_LOOP_SLACK_BOT_TOKEN", AppTokenEnv: "THE_LOOP_SLACK_APP_TOKEN", AuthorizedUsers: []string{},
			Command: "/the-loop", APIURL: "https://slack.com/api/", CatchUpMaxAge: 15 * time.Minute,
			Create: CreateLimits{[]string{}, []string{}}, FileMaxBytes: 20 << 20, Replies: "final",
			Receipts: Receipts{"eyes", "keyboard", "white_check_mark", "hourglass_flowing_sand", "warning", "grey_question"}},
		Service:       Service{true, "127.0.0.1", 8765, false, true},
		GitHubWebhook: GitHubWebhook{false, "127.0.0.1", 8787, "/gh-webhook", "THE_LOOP_GH_WEBHOOK_SECRET"},
		EventLog:      EventLog{"/etc/loop/logs/events.jsonl", 64 << 20},
	}
	if diff := cmp.Diff(want, mustParse(t, "version: 1\n"), cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
}

func TestBOMAndCRLFChangeNothing(t *testing.T) {
	t.Parallel()
	text := "version: 1\nstandingSessions:\n  sessions:\n  - name: a\n    prompt: |\n      one\n      two\n"
	plain := mustParse(t, text)
	windows := mustParse(t, "\ufeff"+strings.ReplaceAll(text, "\n", "\r\n"))
	if diff := cmp.Diff(plain, windows, cmpopts.IgnoreUnexported(Config{})); diff != "" {
		t.Errorf("(-plain +windows):\n%s", diff)
	}
}

func TestAliasesWorkAndAliasBombsAreRefused(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "version: 1\nrouting: {harnessArgs: {a: &x [--y], b: *x}}\n")
	if diff := cmp.Diff(c.Routing.HarnessArgs["a"], c.Routing.HarnessArgs["b"]); diff != "" {
		t.Error(diff)
	}
	bomb := "version: 1\nx0: &x0 [a, a, a, a, a, a, a, a, a, a]\n"
	for i := 1; i < 10; i++ {
		bomb += fmt.Sprintf("x%d: &x%d [%s]\n", i, i, strings.Repeat(fmt.Sprintf("*x%d, ", i-1), 10))
	}
	for _, text := range []string{bomb, "version: 1\nx: &x [*x]\n", "version: 1\nx: " + strings.Repeat("[", 500) + strings.Repeat("]", 500)} {
		if _, err := parseText(text); err == nil || !strings.Contains(err.Error(), "too many values") {
			t.Errorf("not refused for its size: %v", err)
		}
	}
}

func TestNoPartOfASecretIsEverInAMessage(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3tpart"
	for _, text := range []string{
		"version: 1\nxoxb-" + secret + "-1234567: 1\n",
		"version: 1\nstate: {xoxp-" + secret + ": 1}\n",
		"version: 1\nchannels: {slack: {botTokenEnv: xoxb-" + secret + "}}\n",
		"version: 1\nchannels: {slack: {appTokenEnv: \"" + secret + " \"}}\n",
		"version: 1\nwebhooks: {ghWebhook: {secretEnv: " + secret + "-1}}\n",
		"version: 1\nchannels: {slack: {channel: xapp-1-" + secret + "}}\n",
		"version: 1\nchannels: {slack: {channel: ghp_" + secret + "}}\n",
		"version: 1\nrouting: {defaultHarness: [xoxe.xoxb-1-" + secret + "]}\n",
		"version: 1\nenv: *xoxb-" + secret + "\n",
		"version: 1\nrouting: {harnessArgs: {claude: [--token, xoxb-" + secret + "]}}\n",
	} {
		_, err := parseText(text)
		if err == nil || strings.Contains(err.Error(), secret[:4]) {
			t.Errorf("accepted, or shown:\n%s%v", text, err)
		}
	}
}

func TestFilesThatCannotBeAConfigurationAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	big := filepath.Join(dir, "big.yaml")
	writeFile(t, big, "version: 1\n#"+strings.Repeat("x", maxSize))
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		big:                          big + ": is larger than 1 MiB — this cannot be a configuration; check the path",
		fifo:                         fifo + ": is not a regular file — name the YAML file itself",
		dir:                          dir + ": is not a regular file — name the YAML file itself",
		filepath.Join(dir, "absent"): filepath.Join(dir, "absent") + ": does not exist — check the path, or let `the-loop config init` write it",
		filepath.Join(big, "below"):  filepath.Join(big, "below") + ": cannot be opened (not a directory) — check its owner and mode",
	} {
		c, err := Load(path)
		if c != nil || err == nil || err.Error() != want {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

func TestLoadReadsAFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "c.yaml")
	writeFile(t, path, "version: 1\n")
	c, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	here, _ := os.Getwd()
	if c.Path != path || c.StateRoot != filepath.Dir(path) || c.Routing.SpawnWorkdir != here {
		t.Errorf("paths: %+v", c)
	}
}

func TestTheCallersCheckRefusesWithTheKey(t *testing.T) {
	t.Parallel()
	l := testLoader()
	l.Check = func(c *Config) error {
		return &Error{Problems: []Problem{c.ProblemAt("standingSessions.sessions[0].name", "is recorded already — choose another")}}
	}
	_, err := l.parse("/c.yaml", []byte("version: 1\nstandingSessions:\n  sessions:\n  - name: a\n"))
	if err == nil || err.Error() != "/c.yaml:4: standingSessions.sessions[0].name: is recorded already — choose another" {
		t.Errorf("got %v", err)
	}
}

func TestHarnessesAreCheckedAgainstTheBuiltInOnes(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `version: 1
routing: {defaultHarness: clod, harnessArgs: {codex: []}}
harnesses:
  claude: {binary: /opt/claude}
  codex: {binary: codex, args: []}
  mine: {binary: mine}
  full: {binary: full, args: ["{prompt}"]}
standingSessions: {sessions: [{name: a, harness: full}, {name: b, harness: nope}]}
channels: {slack: {create: {harnesses: [claude, nada]}}}
`)
	err := c.CheckHarnesses([]string{"claude", "codex"})
	want := `c.yaml:2: routing.defaultHarness: "clod" is not a known harness — use one of claude, codex, full, mine, or describe it under harnesses
c.yaml:5: harnesses.codex.args: "codex" is built in, only its binary can be replaced — remove args, or choose another name
c.yaml:6: harnesses.mine.args: is missing — add the arguments of the program, as a list
c.yaml:8: standingSessions.sessions[1].harness: "nope" is not a known harness — use one of claude, codex, full, mine, or describe it under harnesses
c.yaml:9: channels.slack.create.harnesses[1]: "nada" is not a known harness — use one of claude, codex, full, mine, or describe it under harnesses`
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, strings.ReplaceAll(err.Error(), "/etc/loop/", "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := mustParse(t, "version: 1\n").CheckHarnesses([]string{"claude"}); err != nil {
		t.Error(err)
	}
}

func TestALongListOfProblemsIsCut(t *testing.T) {
	t.Parallel()
	text := "version: 1\n"
	for i := range 1000 {
		text += fmt.Sprintf("zzzz%d: 1\n", i)
	}
	_, err := parseText(text)
	if n := strings.Count(err.Error(), "\n"); n != maxProblemsShown {
		t.Errorf("%d lines", n+1)
	}
	var refused *Error
	if !errors.As(err, &refused) || len(refused.Problems) != 1000 {
		t.Errorf("not all are in the value: %d", len(refused.Problems))
	}
}

func FuzzLoad(f *testing.F) {
	f.Add(starterYAML)
	for _, s := range []string{"", "\ufeffversion: 1\r\n", "version: 1\nx: &x [*x]\n", "? [a]\n: b\n", "version: !!binary x\n", "a: |\n \x00",
		"version: 1\nharnesses: {a.b: {binary: x}}\n", "version: 1\nstandingSessions: {sessions: [{name: a}, {name: a}]}\n", "%YAML 1.1\n---\n<<: {}\n",
		"version: 0x1\nstate: {root: 0o7}\n", "version: 1e0\n", "version: 18446744073709551615\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := testLoader().parse("/f/c.yaml", data)
		if (c == nil) == (err == nil) {
			t.Fatalf("neither refused nor applied whole: %v, %v", c, err)
		}
		if err == nil {
			c.Warnings()
			_ = c.CheckHarnesses(nil)
			return
		}
		var refused *Error
		if !errors.As(err, &refused) || len(refused.Problems) == 0 {
			t.Fatalf("not an *Error with problems: %v", err)
		}
		for _, p := range refused.Problems {
			if strings.ContainsAny(p.String(), "\n\x1b") || p.Line < 0 || !strings.Contains(p.Message, "—") {
				t.Fatalf("not one clear line: %q", p)
			}
		}
	})
}
