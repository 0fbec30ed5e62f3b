package claude

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/report"
)

func TestClaudeIsGivenItsConversationAndThePromptLast(t *testing.T) {
	t.Parallel()
	c := Harness{SettingsDir: "/d", Binary: "/opt/claude"}
	for _, tc := range []struct {
		name string
		l    sessions.Launch
		want []string
	}{
		{"new", sessions.Launch{Prompt: "-do it", Args: []string{"--allowedTools", "Bash"}},
			[]string{"/opt/claude", "--session-id", harnesstest.ConversationA, "--settings", "/d/" + harnesstest.Session + ".json", "--allowedTools", "Bash", "--", "-do it"}},
		{"resumed", sessions.Launch{Resume: true},
			[]string{"/opt/claude", "--resume", harnesstest.ConversationA, "--settings", "/d/" + harnesstest.Session + ".json"}},
		{"with settings of the operator", sessions.Launch{Args: []string{"--settings", "/etc/mine.json", "--model", "x"}},
			[]string{"/opt/claude", "--session-id", harnesstest.ConversationA, "--settings", "/d/" + harnesstest.Session + ".json", "--model", "x"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			tc.l.Session, tc.l.Conversation = harnesstest.Session, harnesstest.ConversationA
			got, err := c.Command(tc.l)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.Argv); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestClaudeRefusesWhatWouldChooseAnotherConversation(t *testing.T) {
	t.Parallel()
	c := Harness{SettingsDir: "/d"}
	for _, args := range [][]string{{"--continue"}, {"-c"}, {"--resume=x"}, {"-p"}, {"--fork-session"}, {"--", "x"}} {
		_, err := c.Command(sessions.Launch{Session: harnesstest.Session, Conversation: harnesstest.ConversationA, Args: args})
		if !errors.Is(err, sessions.ErrRefused) {
			t.Errorf("harnessArgs %v: %v", args, err)
		}
	}
	for _, id := range []string{"", "-x", "a b", "../x", strings.Repeat("x", 200)} {
		if _, err := c.Command(sessions.Launch{Session: harnesstest.Session, Conversation: id, Resume: true}); err == nil {
			t.Errorf("the conversation %q was taken", id)
		}
	}
}

// settingsOf prepares a session and reads the settings that were written for it.
func settingsOf(t *testing.T, c Harness, l sessions.Launch) map[string]json.RawMessage {
	t.Helper()
	l.Session, l.Conversation = harnesstest.Session, harnesstest.ConversationA
	if err := c.Prepare(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(c.SettingsDir, harnesstest.Session+".json")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the settings file: %v, %v", info.Mode(), err)
	}
	var settings map[string]json.RawMessage
	if err := json.Unmarshal(data, &settings); err != nil {
		t.Fatal(err)
	}
	return settings
}

func TestClaudeIsGivenHooksBesideTheOperatorsSettings(t *testing.T) {
	t.Parallel()
	c := Harness{SettingsDir: filepath.Join(t.TempDir(), "s"), ReportDir: "/r", Hook: []string{"/opt/it's/the-loop", "report"}, PermissionDir: "/a"}
	got := settingsOf(t, c, sessions.Launch{Args: []string{"--settings", `{"model":"x","hooks":{"UserPromptSubmit":[{"hooks":[]}],"Stop":[{"matcher":"m"}],"PreToolUse":[{"matcher":"m"}]}}`}})
	var hooks map[string][]hookGroup
	if err := json.Unmarshal(got["hooks"], &hooks); err != nil {
		t.Fatal(err)
	}
	want := `'/opt/it'"'"'s/the-loop' report /r/` + harnesstest.Session + `.jsonl >/dev/null 2>&1 || :`
	aside := `{ '/opt/it'"'"'s/the-loop' report /r/` + harnesstest.Session + `.jsonl <&3 >/dev/null 2>&1 3<&- & } 3<&0`
	for event, n := range map[string]int{report.EventSessionStart: 1, report.EventPromptSubmit: 2, report.EventStop: 2, report.EventStopFailure: 1,
		report.EventNotification: 1, report.EventSessionEnd: 1, "PreToolUse": 1} {
		if len(hooks[event]) != n {
			t.Errorf("%s has %d groups of hooks, not %d", event, len(hooks[event]), n)
		}
		calls := want
		if slices.Contains(asyncEvents, event) {
			calls = aside
		}
		if event != "PreToolUse" && hooks[event][n-1].Hooks[0].Command != calls {
			t.Errorf("%s calls %s", event, hooks[event][n-1].Hooks[0].Command)
		}
	}
	ask := hooks[report.EventPermissionRequest]
	want = `'/opt/it'"'"'s/the-loop' report /r/` + harnesstest.Session + `.jsonl /a 2>/dev/null || :`
	if len(ask) != 1 || ask[0].Matcher != "*" || ask[0].Hooks[0].Command != want || ask[0].Hooks[0].Timeout < 24*60*60 {
		t.Errorf("for a question: %+v", ask)
	}
	if string(got["model"]) != `"x"` {
		t.Error("the operator's own setting is gone")
	}
}

func TestClaudesWarningIsAnsweredOnlyAsTheOperatorSaid(t *testing.T) {
	t.Parallel()
	asks := []string{"--permission-mode", "bypassPermissions"}
	for _, tc := range []struct {
		bypass BypassPolicy
		args   []string
		want   bool
	}{
		{"", nil, false}, {BypassAuto, asks, true}, {BypassAuto, []string{"--dangerously-skip-permissions"}, true},
		{BypassAuto, []string{"--permission-mode", "plan"}, false}, {BypassAlways, nil, true}, {BypassNever, asks, false},
	} {
		got := settingsOf(t, Harness{SettingsDir: t.TempDir(), Bypass: tc.bypass}, sessions.Launch{Args: tc.args})
		if _, ok := got["skipDangerousModePermissionPrompt"]; ok != tc.want {
			t.Errorf("%q with %v: answered is %v", tc.bypass, tc.args, ok)
		}
	}
}

// prepareTrust prepares a session in a folder of a home with that .claude.json, and returns what is in it then.
func prepareTrust(t *testing.T, content string) (folder string, after string, err error) {
	t.Helper()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	folder = filepath.Join(home, "work")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, ".claude.json")
	if content != "" {
		if err := os.WriteFile(file, []byte(strings.ReplaceAll(content, "FOLDER", folder)), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	c := Harness{SettingsDir: filepath.Join(home, "d"), AcceptTrust: true}
	err = c.Prepare(t.Context(), sessions.Launch{Session: harnesstest.Session, Cwd: folder, Env: map[string]string{"HOME": home}})
	data, _ := os.ReadFile(file)
	if _, serr := os.Stat(file + ".lock"); serr == nil {
		t.Error("the lock is left")
	}
	return folder, strings.ReplaceAll(string(data), folder, "FOLDER"), err
}

func TestClaudesTrustChangesNothingElseInTheOperatorsFile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, was, want string }{
		{"no file", "", `{"projects":{"FOLDER":{"hasTrustDialogAccepted":true}}}`},
		{"empty", "{ }\n", "{\"projects\":{\"FOLDER\":{\"hasTrustDialogAccepted\":true}} }\n"},
		{"others", "{\n  \"big\": 12345678901234567890.10,\n  \"projects\": {\n    \"/x\": {\"é<\": 1}\n  }\n}",
			"{\n  \"big\": 12345678901234567890.10,\n  \"projects\": {\"FOLDER\":{\"hasTrustDialogAccepted\":true},\n    \"/x\": {\"é<\": 1}\n  }\n}"},
		{"refused before", `{"projects":{"FOLDER":{"hasTrustDialogAccepted": false, "allowedTools":[]}}, "z": 1}`,
			`{"projects":{"FOLDER":{"hasTrustDialogAccepted": true, "allowedTools":[]}}, "z": 1}`},
		{"accepted before", `{"projects":{"FOLDER":{"hasTrustDialogAccepted":true}}}`, `{"projects":{"FOLDER":{"hasTrustDialogAccepted":true}}}`},
		{"accepted above", `{"projects":{"/":{"hasTrustDialogAccepted":true}}}`, `{"projects":{"/":{"hasTrustDialogAccepted":true}}}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, got, err := prepareTrust(t, tc.was)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAFileThatCannotBeUnderstoodIsReportedAndLeftAlone(t *testing.T) {
	t.Parallel()
	for _, content := range []string{`{"projects":`, `[]`, `{"projects":[]}`, `{"projects":{"FOLDER":7}}`, "\xff"} {
		_, after, err := prepareTrust(t, content)
		if err == nil || !strings.Contains(err.Error(), ".claude.json") {
			t.Errorf("%q: %v; want an error that names the file", content, err)
		}
		if after != content {
			t.Errorf("%q became %q", content, after)
		}
	}
}

func TestTheHomeFolderIsNeverTrustedForTheOperator(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	c := Harness{SettingsDir: filepath.Join(home, "d"), AcceptTrust: true, Home: home}
	for _, folder := range []string{home, filepath.Dir(home), "/"} {
		if err := c.Prepare(t.Context(), sessions.Launch{Session: harnesstest.Session, Cwd: folder}); err != nil {
			t.Error(err)
		}
	}
	if data, err := os.ReadFile(filepath.Join(home, ".claude.json")); err == nil {
		t.Errorf("it says %s", data)
	}
}

func TestConcurrentTrustWritesLoseNothing(t *testing.T) {
	t.Parallel()
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c := Harness{SettingsDir: filepath.Join(home, "settings"), AcceptTrust: true, Home: home}
	var all sync.WaitGroup
	for _, name := range strings.Fields("a b c d e f g h i j") {
		folder := filepath.Join(home, name)
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if err := c.Prepare(t.Context(), sessions.Launch{Session: harnesstest.Session, Cwd: folder}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	text, err := os.ReadFile(filepath.Join(home, ".claude.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields("a b c d e f g h i j") {
		if !isTrusted(text, filepath.Join(home, name)) {
			t.Errorf("%s is not trusted", name)
		}
	}
}

func TestALockThatItsHolderLeftIsTakenAndALiveOneIsWaitedFor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "f")
	if err := os.Mkdir(file+".lock", 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := acquireLockDir(ctx, file); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a live lock: %v", err)
	}
	old := time.Now().Add(-2 * staleLockAge)
	if err := os.Chtimes(file+".lock", old, old); err != nil {
		t.Fatal(err)
	}
	release, err := acquireLockDir(t.Context(), file)
	if err != nil {
		t.Fatal(err)
	}
	release()
}

func TestClaudeNamesAProjectsFolderAsTheProgramDoes(t *testing.T) {
	t.Parallel()
	for cwd, want := range map[string]string{
		"/srv/my.app_v2":                "-srv-my-app-v2",
		"/srv/é😀":                       "-srv----",
		"/" + strings.Repeat("ab/", 80): "-" + strings.Repeat("ab-", 66) + "a-",
	} {
		got := projectName(cwd)
		if got != want && !(len(cwd) > maxProjectName && strings.HasPrefix(got, want)) {
			t.Errorf("claudeProject(%q) = %q; want %q", cwd, got, want)
		}
	}
}

func TestConversationIsFollowedThroughItsSuccessors(t *testing.T) {
	t.Parallel()
	start := func(id string) report.Report { return report.Report{Event: report.EventSessionStart, Conversation: id} }
	end := func(id string) report.Report { return report.Report{Event: report.EventSessionEnd, Conversation: id} }
	for _, tc := range []struct {
		name, from, want string
		reports          []report.Report
	}{
		{"nothing yet", harnesstest.ConversationA, "", nil},
		{"an earlier run's", harnesstest.ConversationA, "", []report.Report{start("x"), end("x")}},
		{"the same", harnesstest.ConversationA, harnesstest.ConversationA, []report.Report{start("x"), end("x"), start(harnesstest.ConversationA)}},
		{"cleared", harnesstest.ConversationA, harnesstest.ConversationB, []report.Report{start(harnesstest.ConversationA), end(harnesstest.ConversationA), start(harnesstest.ConversationB)}},
		{"cleared twice", harnesstest.ConversationA, "c", []report.Report{start(harnesstest.ConversationA), start(harnesstest.ConversationB), start("c")}},
		{"and back", harnesstest.ConversationB, harnesstest.ConversationA, []report.Report{start(harnesstest.ConversationA), start(harnesstest.ConversationB), start(harnesstest.ConversationA)}},
		{"a bad id", harnesstest.ConversationA, harnesstest.ConversationA, []report.Report{start(harnesstest.ConversationA), start("../x")}},
	} {
		var facts report.Facts
		for _, r := range tc.reports {
			facts.Add(r)
		}
		if got := facts.CurrentConversation(tc.from); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestTheChatKeyIsAddedToTheOperatorsBindingsOnlyWhenAsked(t *testing.T) {
	t.Parallel()
	const group = `{"context":"Chat","bindings":{"ctrl+x ctrl+y":"chat:submit"}}`
	for _, tc := range []struct {
		name, was, want string
		added, fails    bool
	}{
		{"no file", "", `{"bindings":[` + group + `]}`, true, false},
		{"no list", `{"$schema": "x"}`, `{"bindings":[` + group + `],"$schema": "x"}`, true, false},
		{"others", "{\n \"bindings\": [ {\"context\":\"Chat\",\"bindings\":{\"a\":null}} ]\n}",
			"{\n \"bindings\": [ {\"context\":\"Chat\",\"bindings\":{\"a\":null}} ," + group + "]\n}", true, false},
		{"there", `{"bindings":[` + group + `]}`, `{"bindings":[` + group + `]}`, false, false},
		{"taken", `{"bindings":[{"context":"Chat","bindings":{"ctrl+x ctrl+y":"x"}}]}`, `{"bindings":[{"context":"Chat","bindings":{"ctrl+x ctrl+y":"x"}}]}`, false, true},
		{"broken", `{"bindings":[`, `{"bindings":[`, false, true},
		{"another shape", `{"bindings":{}}`, `{"bindings":{}}`, false, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			c := Harness{Home: t.TempDir()}
			file := filepath.Join(c.Home, ".claude", "keybindings.json")
			if tc.was != "" {
				harnesstest.WriteLines(t, file, tc.was)
			}
			added, err := c.AddChatKey(nil)
			if added != tc.added || (err != nil) != tc.fails {
				t.Errorf("added %v, %v", added, err)
			}
			data, err := os.ReadFile(file)
			if err != nil || strings.TrimSpace(string(data)) != tc.want {
				t.Errorf("the file holds %s, %v; want %s", data, err, tc.want)
			}
		})
	}
}

func TestTheSubmitKeyIsTheOneThatTheSessionWasStartedWith(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	c := Harness{Home: home, SettingsDir: filepath.Join(home, "d"), ReportDir: filepath.Join(home, "r"), Hook: []string{"x"}}
	l := sessions.Launch{Session: harnesstest.Session, Conversation: harnesstest.ConversationA, Cwd: home}
	key := func() string {
		t.Helper()
		bytes, _, err := c.SubmitKey(t.Context(), sessions.Conversation{Session: harnesstest.Session, ID: harnesstest.ConversationA})
		if err != nil {
			t.Fatal(err)
		}
		return bytes
	}
	if err := c.Prepare(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if _, err := c.AddChatKey(nil); err != nil {
		t.Fatal(err)
	}
	if key() != "\r" {
		t.Error("a session that runs is given a key that it does not know")
	}
	if err := c.Prepare(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if key() != chatKeyBytes {
		t.Error("a session that was started since is not given the key")
	}
}
