package harness

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/report"
	"the-loop/sessions/harness/transcript"
)

// Lines as Claude Code 2.1.197 writes them, shortened; the time and the text are filled in.
const (
	lineUser      = `{"isSidechain":false,"type":"user","promptSource":"typed","message":{"role":"user","content":%[2]q},"uuid":"u-%[2]s","timestamp":"%[1]s"}`
	lineEscaped   = `{"isSidechain":false,"type":"user","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user%[2]s]"}]},"uuid":"i","timestamp":"%[1]s"}`
	lineSlash     = `{"isSidechain":false,"type":"user","message":{"role":"user","content":"<command-name>%[2]s</command-name>"},"uuid":"c","timestamp":"%[1]s"}`
	lineToolDone  = `{"isSidechain":false,"type":"user","message":{"role":"user","content":[{"tool_use_id":"t1","type":"tool_result","content":%[2]q}]},"timestamp":"%[1]s"}`
	lineCaveat    = `{"isSidechain":false,"isMeta":true,"type":"user","message":{"role":"user","content":%[2]q},"uuid":"m","timestamp":"%[1]s"}`
	lineCompacted = `{"isSidechain":false,"isCompactSummary":true,"type":"user","message":{"role":"user","content":%[2]q},"uuid":"m","timestamp":"%[1]s"}`
)

// wantTurn compares what is told of the turn: works, or the reason why it does not.
func wantTurn(t *testing.T, what string, told sessions.TranscriptBatch, works bool) {
	t.Helper()
	turn := told.Turn
	if turn.Working != works {
		t.Errorf("%s: works is %t; want %t", what, turn.Working, works)
	}
	if works && turn.Since.IsZero() || !works && !turn.Since.IsZero() && turn.Until.Before(turn.Since) {
		t.Errorf("%s: the turn is from %s to %s", what, turn.Since, turn.Until)
	}
}

func TestClaudesTurnRunsFromTheTextToItsEnd(t *testing.T) {
	t.Parallel()
	k := newClaudeEnv(t)
	told := k.read("")
	step := func(what string, works bool, lines ...string) {
		t.Helper()
		for _, l := range lines {
			k.appendMessage(conversationA, l, what)
		}
		told = k.read(told.Next)
		wantTurn(t, what, told, works)
		wantTurn(t, what+", read again", k.read(told.Next), works)
	}
	wantTurn(t, "nothing yet", told, false)
	step("a command", false, lineSlash, lineCaveat)
	step("asked", true, lineUser)
	step("a tool", true, lineStep, lineTool, lineToolDone)
	step("a subagent's end", true, lineSidechain)
	step("done", false, lineFinal)
	step("took", false, lineDuration)
	step("asked again", true, lineUser)
	step("an error", false, lineError)
	step("asked for long", true, lineUser, lineTool)
	step(" for tool use", false, lineToolDone, lineEscaped)
	step("asked in vain", true, lineUser)
	step("", false, lineEscaped)
	step("asked an older one", true, lineUser, lineNull)
	step("ends by its time", false, lineDuration)
	step("a summary", false, lineCompacted)
}

func TestClaudesTurnEndsWithItsProgramOrConversation(t *testing.T) {
	t.Parallel()
	for name, event := range map[string]struct {
		event, source string
		works         bool
	}{
		"started again": {report.EventLaunch, "", false},
		"ended":         {report.EventSessionEnd, "", false},
		"resumed":       {report.EventSessionStart, "resume", false},
		"compacted":     {report.EventSessionStart, "compact", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newClaudeEnv(t)
			k.appendMessage(conversationA, lineUser, "a")
			told := k.read("")
			wantTurn(t, "asked", told, true)
			k.appendReport(time.Now(), event.event, conversationA, map[string]string{"source": event.source})
			told = k.read(told.Next)
			wantTurn(t, name, told, event.works)
			k.appendMessage(conversationA, lineUser, "b")
			wantTurn(t, "asked again", k.read(told.Next), true)
		})
	}
	k := newClaudeEnv(t)
	k.appendMessage(conversationA, lineUser, "a")
	told := k.read("")
	k.appendReport(time.Now(), report.EventSessionStart, "22222222-2222-4222-8222-222222222222", map[string]string{"source": "clear"})
	wantTurn(t, "cleared", k.read(told.Next), false)
}

func TestCodexsTurnFollowsItsEvents(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "rollout.jsonl")
	s := codexOffset{Cursor: transcript.Cursor{Conversation: "a", File: path}}
	step := func(what string, works bool, line string) {
		t.Helper()
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		if _, err := fmt.Fprintln(f, fmt.Sprintf(line, time.Now().Format(time.RFC3339Nano), what)); err != nil {
			t.Fatal(err)
		}
		told := sessions.TranscriptBatch{}
		if err := readCodexTranscript(&s, &told); err != nil {
			t.Fatal(err)
		}
		wantTurn(t, what, sessions.TranscriptBatch{Turn: s.Turn}, works)
	}
	const begins = `{"timestamp":%q,"type":"event_msg","payload":{"type":"task_started","turn_id":"%s"}}`
	const aborts = `{"timestamp":%q,"type":"event_msg","payload":{"type":"turn_aborted","reason":"%s"}}`
	step("begun", true, begins)
	step("answered", true, codexAnswer)
	step("over", false, codexTurnComplete)
	step("begun again", true, begins)
	step("interrupted", false, aborts)
	step("and again", true, begins)
	step("failed", false, codexFailure)
}

func TestTheSmallAgentsTurnsFollowOneAnother(t *testing.T) {
	t.Parallel()
	a := SmallAgent{Dir: t.TempDir()}
	c := sessions.Conversation{ID: "a", Started: time.Now()}
	place := sessions.Offset("")
	step := func(what string, works bool, id string, entries ...string) {
		t.Helper()
		appendSmallAgentEntries(t, a.Dir, id, entries...)
		told, err := a.ReadTranscript(t.Context(), c, place)
		if err != nil {
			t.Fatal(err)
		}
		wantTurn(t, what, told, works)
		place = told.Next
	}
	step("nothing yet", false, "a", "start ")
	step("asked", true, "a", "user one")
	step("a second waits", true, "a", "user two")
	step("the second runs", true, "a", "agent one")
	step("both done", false, "a", "agent two")
	step("asked again", true, "a", "user three", "command /clear", "user four")
	step("interrupted, the next runs", true, "a", "interrupt ")
	step("cleared", true, "a", "clear b")
	step("done there", false, "b", "agent four")
	step("asked once more", true, "b", "user five", "user six")
	step("killed and resumed", false, "b", "start ")
}
