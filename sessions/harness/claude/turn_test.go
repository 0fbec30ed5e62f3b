package claude

import (
	"testing"
	"time"

	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/report"
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

func TestClaudesTurnRunsFromTheTextToItsEnd(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	batch := k.read("")
	step := func(what string, works bool, lines ...string) {
		t.Helper()
		for _, l := range lines {
			k.appendMessage(harnesstest.ConversationA, l, what)
		}
		batch = k.read(batch.Next)
		harnesstest.WantTurn(t, what, batch, works)
		harnesstest.WantTurn(t, what+", read again", k.read(batch.Next), works)
	}
	harnesstest.WantTurn(t, "nothing yet", batch, false)
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
			k := newTranscriptEnv(t)
			k.appendMessage(harnesstest.ConversationA, lineUser, "a")
			batch := k.read("")
			harnesstest.WantTurn(t, "asked", batch, true)
			k.appendReport(time.Now(), event.event, harnesstest.ConversationA, map[string]string{"source": event.source})
			batch = k.read(batch.Next)
			harnesstest.WantTurn(t, name, batch, event.works)
			k.appendMessage(harnesstest.ConversationA, lineUser, "b")
			harnesstest.WantTurn(t, "asked again", k.read(batch.Next), true)
		})
	}
	k := newTranscriptEnv(t)
	k.appendMessage(harnesstest.ConversationA, lineUser, "a")
	batch := k.read("")
	k.appendReport(time.Now(), report.EventSessionStart, "22222222-2222-4222-8222-222222222222", map[string]string{"source": "clear"})
	harnesstest.WantTurn(t, "cleared", k.read(batch.Next), false)
}
