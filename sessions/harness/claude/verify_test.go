package claude

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/report"
)

// Lines as Claude Code 2.1.197 writes them, shortened.
const (
	lineTyped         = `{"parentUuid":null,"isSidechain":false,"promptId":"p1","type":"user","message":{"role":"user","content":%q},"uuid":"u1","permissionMode":"default","origin":{"kind":"human"},"promptSource":"typed","userType":"external","sessionId":"s"}`
	lineEnqueue       = `{"type":"queue-operation","operation":"enqueue","timestamp":"2026-03-04T05:06:07.890Z","sessionId":"s","content":%q}`
	lineDequeue       = `{"type":"queue-operation","operation":"dequeue","timestamp":"2026-03-04T05:06:07.890Z","sessionId":"s"}`
	lineQueuedUser    = `{"parentUuid":"u0","isSidechain":false,"promptId":"p2","type":"user","message":{"role":"user","content":%q},"uuid":"u2","origin":{"kind":"human"},"promptSource":"queued","sessionId":"s"}`
	lineBlocks        = `{"isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"text","text":%q}]},"promptSource":"typed"}`
	lineCommand       = `{"parentUuid":"u3","isSidechain":false,"type":"system","subtype":"local_command","content":"<command-name>/context</command-name>\n            <command-message>context</command-message>\n            <command-args>all of it</command-args>","level":"info"}`
	lineClear         = `{"isSidechain":false,"type":"user","message":{"role":"user","content":"<command-name>/clear</command-name>\n            <command-message>clear</command-message>\n            <command-args></command-args>"},"uuid":"u9"}`
	lineResult        = `{"isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":%q,"is_error":false}]}}`
	lineAssistant     = `{"isSidechain":false,"type":"assistant","message":{"role":"assistant","content":[{"type":"text","text":%q}]}}`
	lineMeta          = `{"isSidechain":false,"isMeta":true,"type":"user","message":{"role":"user","content":%q}}`
	lineSidechainUser = `{"isSidechain":true,"type":"user","message":{"role":"user","content":%q}}`
)

func TestEachTextThatClaudeAcceptedIsOneLine(t *testing.T) {
	t.Parallel()
	const text = "do \"this\"\nand  that 日本"
	for _, tc := range []struct {
		name, line string
		want       bool
	}{
		{"typed", lineTyped, true}, {"queued while a turn runs", lineEnqueue, true}, {"in blocks", lineBlocks, true},
		{"taken from the queue later", lineQueuedUser, false}, {"a tool's result", lineResult, false},
		{"said by the agent", lineAssistant, false}, {"written by the program", lineMeta, false}, {"a subagent's", lineSidechainUser, false},
	} {
		got, ok := parseInput(fmt.Appendf(nil, tc.line, text))
		if taken := ok && matchesSum(got, sessions.Fingerprint(text)); taken != tc.want {
			t.Errorf("%s: taken is %v", tc.name, taken)
		}
	}
	for line, want := range map[string]string{lineCommand: "/context all of it", lineClear: "/clear"} {
		if got, ok := parseInput([]byte(line)); !ok || !matchesSum(got, sessions.Fingerprint(want)) {
			t.Errorf("%q, %v; want %q", got, ok, want)
		}
	}
	if _, ok := parseInput([]byte(lineDequeue)); ok {
		t.Error("what leaves the queue is taken for a text")
	}
	if !matchesSum("<pasted_content id=\"1\" lines=\"2\">\na\nb\n</pasted_content>", sessions.Fingerprint("a\nb")) {
		t.Error("the wrapper around a long paste is not taken off")
	}
}

// transcriptEnv is one conversation on disk with its reports.
type transcriptEnv struct {
	t      *testing.T
	claude Harness
	sessions.Conversation
}

func newTranscriptEnv(t *testing.T) *transcriptEnv {
	home := t.TempDir()
	return &transcriptEnv{t: t, claude: Harness{Home: home, ReportDir: filepath.Join(home, "reports"), Hook: []string{"x"}},
		Conversation: sessions.Conversation{Session: harnesstest.Session, ID: harnesstest.ConversationA, Cwd: "/srv/a.b"}}
}

func (k *transcriptEnv) transcriptFile(id string) string {
	return filepath.Join(k.claude.Home, ".claude", "projects", "-srv-a-b", id+".jsonl")
}

func (k *transcriptEnv) appendLine(id, format, text string) {
	k.t.Helper()
	if err := os.MkdirAll(filepath.Dir(k.transcriptFile(id)), 0o700); err != nil {
		k.t.Fatal(err)
	}
	f, err := os.OpenFile(k.transcriptFile(id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if strings.Contains(format, "%") {
		format = fmt.Sprintf(format, text)
	}
	if _, err := fmt.Fprintln(f, format); err != nil {
		k.t.Fatal(err)
	}
}

func (k *transcriptEnv) appendReport(at time.Time, event, id string, payload map[string]string) {
	k.t.Helper()
	data, err := json.Marshal(payload)
	if err != nil {
		k.t.Fatal(err)
	}
	path, err := report.Path(k.claude.ReportDir, harnesstest.Session)
	if err != nil {
		k.t.Fatal(err)
	}
	if err := report.Append(path, report.Report{At: at, Event: event, Conversation: id, Payload: data}); err != nil {
		k.t.Fatal(err)
	}
}

func (k *transcriptEnv) offset() sessions.Offset {
	k.t.Helper()
	offset, err := k.claude.Offset(k.t.Context(), k.Conversation)
	if err != nil {
		k.t.Fatal(err)
	}
	return offset
}

func (k *transcriptEnv) accepted(since sessions.Offset, text string) bool {
	k.t.Helper()
	ok, err := k.claude.Accepted(k.t.Context(), k.Conversation, since, sessions.Fingerprint(text))
	if err != nil {
		k.t.Fatal(err)
	}
	return ok
}

func TestClaudesEvidenceCountsFromTheOffset(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	start := k.offset()
	k.appendLine(harnesstest.ConversationA, lineTyped, "yes")
	if !k.accepted(start, "yes") || k.accepted(start, "no") {
		t.Error("from the beginning")
	}
	later := k.offset()
	if k.accepted(later, "yes") {
		t.Error("an earlier text proves a later one")
	}
	k.appendLine(harnesstest.ConversationA, lineTyped, "yes")
	if !k.accepted(later, "yes") {
		t.Error("the later one is not seen")
	}
}

// Claude Code 2.1.197 reports a queued text when it leaves the queue, after the next one may have been typed.
func TestAQueuedTextThatIsReportedLateDoesNotProveAnEqualOne(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	k.appendReport(time.Now(), report.EventSessionStart, harnesstest.ConversationA, map[string]string{"source": "startup"})
	first := k.offset()
	k.appendLine(harnesstest.ConversationA, lineEnqueue, "yes")
	if !k.accepted(first, "yes") {
		t.Fatal("the queued text is not seen")
	}
	second := k.offset()
	k.appendLine(harnesstest.ConversationA, lineDequeue, "")
	k.appendReport(time.Now().Add(-time.Minute), report.EventPromptSubmit, harnesstest.ConversationA, map[string]string{"prompt": "yes"})
	k.appendLine(harnesstest.ConversationA, lineQueuedUser, "yes")
	if k.accepted(second, "yes") {
		t.Error("the first text proves the second")
	}
}

func TestClaudesEvidenceFollowsAClear(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	k.appendReport(time.Now(), report.EventSessionStart, harnesstest.ConversationA, map[string]string{"source": "startup"})
	k.appendLine(harnesstest.ConversationA, lineTyped, "before")
	offset := k.offset()
	k.appendReport(time.Now(), report.EventSessionEnd, harnesstest.ConversationA, map[string]string{"reason": "clear"})
	k.appendReport(time.Now(), report.EventSessionStart, harnesstest.ConversationB, map[string]string{"source": "clear"})
	k.appendLine(harnesstest.ConversationB, lineClear, "")
	k.appendLine(harnesstest.ConversationB, lineTyped, "after")
	if !k.accepted(offset, "/clear") || !k.accepted(offset, "after") || k.accepted(offset, "before") {
		t.Error("from before the clear")
	}
	if now := k.offset(); !strings.Contains(string(now), harnesstest.ConversationB) || k.accepted(now, "after") {
		t.Errorf("the place is %s", now)
	}
}

func TestAConversationThatAPersonReopenedProvesNothingByItsPast(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	k.appendLine(harnesstest.ConversationB, lineTyped, "yes")
	k.appendReport(time.Now(), report.EventSessionStart, harnesstest.ConversationA, map[string]string{"source": "startup"})
	offset := k.offset()
	k.appendReport(time.Now(), report.EventSessionStart, harnesstest.ConversationB, map[string]string{"source": "resume"})
	if k.accepted(offset, "yes") {
		t.Error("its past is taken for proof")
	}
}

func TestReportsAreProofWhereNoTranscriptIsKept(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	k.appendReport(time.Now(), report.EventSessionStart, harnesstest.ConversationA, map[string]string{"source": "startup"})
	offset := k.offset()
	k.appendReport(time.Now(), report.EventPromptSubmit, harnesstest.ConversationA, map[string]string{"prompt": "hello"})
	if k.accepted(offset, "hello") {
		t.Error("the transcript was not waited for")
	}
	k.appendReport(time.Now().Add(-time.Minute), report.EventPromptSubmit, harnesstest.ConversationA, map[string]string{"prompt": "hello"})
	if !k.accepted(offset, "hello") {
		t.Error("the report is not counted")
	}
	for _, bad := range []sessions.Offset{"", "7", "1:x", "1:../x@0", "-1:c@0", "1:c@x", "x:c@0"} {
		if _, err := k.claude.Accepted(t.Context(), k.Conversation, bad, "x"); err == nil {
			t.Errorf("Taken from %q: no error", bad)
		}
	}
}

// What Claude Code writes down of a text is compared with the text as it was typed.
func TestClaudesRewrittenTextsStillMatch(t *testing.T) {
	t.Parallel()
	for typed, written := range map[string]string{
		"look\nAttached file: /w/shot.png ":                      "[Image #11]look\nAttached file:",
		"Attached file: /w/my shot.PNG\nAttached file: /w/b.jpg": "[Image #1][Image #2]Attached file:\nAttached file:",
		"see '/w/a b.webp' please":                               "see '/w/a b.webp' please",
		"see /w/none.png":                                        "see /w/none.png",
		"e\u0301 \u2126 \u1112\u1161\u11ab":                      "\u00e9 \u03a9 \ud55c",
		"<command-name>/x</command-name> and more":               "<command-name>/x</command-name> and more",
		"/clear it now":                                          "<command-name>/clear</command-name>\n<command-message>clear</command-message>\n<command-args>it now</command-args>",
		"[Image #1] is what?":                                    "[Image #1] is what?",
		`ends in \ `:                                             `ends in \`,
	} {
		if !matchesSum(written, sessions.Fingerprint(normalizeText(typed))) {
			t.Errorf("%q is not known as %q", written, typed)
		}
	}
	for typed, written := range map[string]string{"look at /w/a.txt": "look at", "look /w/a.png": "[Image #1]look there"} {
		if matchesSum(written, sessions.Fingerprint(normalizeText(typed))) {
			t.Errorf("%q is taken for %q", written, typed)
		}
	}
}
