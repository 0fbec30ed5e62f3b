package gemini

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/transcript"
)

// Lines as Gemini CLI 0.61.0 writes them, shortened. The talk has a text before a tool, an error, a cancelled turn, and what is
// written again: a message once its tool is done, and the whole history.
const (
	lineHead     = `{"sessionId":"` + harnesstest.ConversationA + `","projectHash":"h","startTime":"2026-11-30T10:43:14.414Z","lastUpdated":"2026-11-30T10:43:14.414Z","kind":"main"}`
	lineSet      = `{"$set":{"lastUpdated":"2026-11-30T10:43:14.611Z"}}`
	lineHistory  = `{"$set":{"messages":[{"id":"c0","timestamp":"2026-11-30T10:43:14.414Z","type":"user","content":[{"text":"<session_context>x</session_context>"}]},{"id":"g1","timestamp":"2026-11-30T10:43:14.641Z","type":"gemini","content":[{"text":"one"}]}]}}`
	lineUser     = `{"id":"u-%[1]s","timestamp":"2026-11-30T10:43:16.572Z","type":"user","content":[{"text":"%[1]s"}]}`
	lineText     = `{"id":"g-%[1]s","timestamp":"2026-11-30T10:43:18.549Z","type":"gemini","content":"%[1]s","thoughts":[],"tokens":{"input":1,"output":1,"cached":0,"thoughts":0,"tool":0,"total":2},"model":"gemini-3.1-pro-preview"}`
	lineToolCall = `{"id":"g-%[1]s","timestamp":"2026-11-30T10:43:18.549Z","type":"gemini","content":"%[1]s","thoughts":[],"tokens":{"total":2},"model":"m","toolCalls":[{"id":"run_shell_command_1","name":"run_shell_command","args":{"command":"echo hi"},"result":[{"functionResponse":{"id":"run_shell_command_1"}}],"status":"success"}]}`
	lineResult   = `{"id":"r1","timestamp":"2026-11-30T10:43:18.723Z","type":"user","content":[{"functionResponse":{"id":"run_shell_command_1","name":"run_shell_command","response":{"output":"hi"}}}]}`
	lineError    = `{"id":"e-%[1]s","timestamp":"2026-11-30T10:53:58.601Z","type":"error","content":"%[1]s"}`
	lineInfo     = `{"id":"i-%[1]s","timestamp":"2026-11-30T10:53:58.601Z","type":"info","content":"%[1]s"}`
)

func transcriptLines() []string {
	return []string{lineHead, lineHistory, fmt.Sprintf(lineUser, "hello"), lineSet, fmt.Sprintf(lineText, "one"), lineSet,
		fmt.Sprintf(lineUser, "run it"), lineHistory, fmt.Sprintf(lineText, "I look"), lineSet, fmt.Sprintf(lineToolCall, "I look"),
		lineResult, lineSet, fmt.Sprintf(lineText, "done"), fmt.Sprintf(lineError, "Unknown command"), fmt.Sprintf(lineUser, "fail"),
		fmt.Sprintf(lineError, "[API Error: 400]"), fmt.Sprintf(lineInfo, "This request failed."), fmt.Sprintf(lineUser, "wait"),
		fmt.Sprintf(lineText, "I begin"), fmt.Sprintf(lineInfo, cancelledText), fmt.Sprintf(lineUser, "last"), fmt.Sprintf(lineText, "bye")}
}

// wantMessages is what the talk says, by its lines: done is final because the next text of the user comes after it.
var wantMessages = []string{"F one", "S I look", "F done", "E [API Error: 400]", "F I begin"}

func chatFile(dir, id string) string {
	return filepath.Join(dir, "chats", "session-2026-11-30T10-43-"+id[:8]+".jsonl")
}

func TestGeminisMessagesAreTheSameWheneverTheyAreRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		g, conv, dir := newFolder(t, "[]")
		conv.Started = time.Date(2026, 11, 30, 10, 43, 0, 0, time.UTC)
		harnesstest.WriteLines(t, chatFile(dir, harnesstest.ConversationA))
		if err := os.Chtimes(filepath.Join(dir, "logs.json"), conv.Started, conv.Started); err != nil {
			t.Fatal(err) // nobody has said /clear lately: the processes need not be looked at
		}
		whole := strings.Join(transcriptLines(), "\n") + "\n"
		begin := sessions.TranscriptBatch{Next: transcript.Encode(transcriptOffset{Since: conv.Started, Conversation: harnesstest.ConversationA, Dir: dir, LogSeen: conv.Started.UnixNano()})}
		batch := begin
		var all []sessions.AgentMessage
		for at := 0; at < len(whole); {
			at = min(len(whole), at+rapid.IntRange(1, 700).Draw(r, "bytes"))
			if err := os.WriteFile(chatFile(dir, harnesstest.ConversationA), []byte(whole[:at]), 0o600); err != nil {
				t.Fatal(err)
			}
			batch = harnesstest.ReadOn(t, g, conv, batch)
			all = append(all, batch.Messages...)
			if !json.Valid([]byte(batch.Next)) {
				t.Fatalf("the place is %q", batch.Next)
			}
		}
		if got := harnesstest.DescribeMessages(sessions.TranscriptBatch{Messages: all}); !slices.Equal(got, wantMessages) {
			r.Errorf("heard %q; want %q", got, wantMessages)
		}
		if !batch.Turn.Working {
			r.Error("the last turn does not run")
		}
		once := harnesstest.ReadOn(t, g, conv, begin)
		if !slices.Equal(once.Messages, all) {
			r.Errorf("read at once it is %+v, was %+v", once.Messages, all)
		}
	})
}

func TestGeminisLastTextIsFinalWhenItsScreenWaitsForText(t *testing.T) {
	t.Parallel()
	g, conv, dir := newFolder(t, "[]")
	conv.Started = time.Date(2026, 11, 30, 10, 43, 0, 0, time.UTC)
	idle := false
	conv.IsIdle = func(context.Context) (bool, error) { return idle, nil }
	lines := transcriptLines()[:9] // up to the text before the tool
	harnesstest.WriteLines(t, chatFile(dir, harnesstest.ConversationA), lines...)
	batch := harnesstest.ReadOn(t, g, conv, sessions.TranscriptBatch{})
	harnesstest.WantMessages(t, batch, "F one")
	if !batch.Turn.Working {
		t.Error("no turn runs while a tool is asked for")
	}
	lines = append(lines, transcriptLines()[9:14]...)
	harnesstest.WriteLines(t, chatFile(dir, harnesstest.ConversationA), lines...)
	idle = true
	batch = harnesstest.ReadOn(t, g, conv, batch)
	harnesstest.WantMessages(t, batch, "S I look", "F done")
	if batch.Turn.Working {
		t.Error("the turn goes on")
	}
	harnesstest.WriteLines(t, chatFile(dir, harnesstest.ConversationA), append(lines, transcriptLines()[14:19]...)...)
	harnesstest.WantMessages(t, harnesstest.ReadOn(t, g, conv, batch), "E [API Error: 400]")
}

func TestGeminiIsReadAfterAClearAndInTheFileOfAResumedConversation(t *testing.T) {
	t.Parallel()
	g, conv, dir := newFolder(t, "[]")
	conv.Started = time.Now().Add(-time.Minute)
	conv.IsIdle = func(context.Context) (bool, error) { return false, nil }
	now := func(format, text string) string {
		return strings.NewReplacer("2026-11-30T10:43:18.549Z", time.Now().UTC().Format(time.RFC3339Nano),
			"2026-11-30T10:43:14.414Z", time.Now().UTC().Format(time.RFC3339Nano)).Replace(strings.ReplaceAll(format, "%[1]s", text))
	}
	harnesstest.WriteLines(t, chatFile(dir, harnesstest.ConversationA), lineHead, now(lineText, "before"))
	batch := harnesstest.ReadOn(t, g, conv, sessions.TranscriptBatch{})
	harnesstest.WantMessages(t, batch)
	entry := `[{"sessionId":"` + harnesstest.ConversationA + `","type":"user","message":"/clear","timestamp":"` + time.Now().UTC().Format(time.RFC3339Nano) + `"}]`
	harnesstest.WriteLines(t, filepath.Join(dir, "logs.json"), entry)
	harnesstest.WriteLines(t, chatFile(dir, harnesstest.ConversationB), now(strings.ReplaceAll(lineHead, harnesstest.ConversationA, harnesstest.ConversationB), ""), now(lineUser, "go"), now(lineText, "after"), now(lineUser, "on"))
	batch = harnesstest.ReadOn(t, g, conv, batch)
	harnesstest.WantMessages(t, batch, "F before", "F after")
	if !slices.Contains(batch.WatchFiles, chatFile(dir, harnesstest.ConversationB)) {
		t.Errorf("watches %q", batch.WatchFiles)
	}
	resumed := filepath.Join(dir, "chats", "session-2026-11-30T10-59-"+harnesstest.ConversationB[:8]+".jsonl")
	harnesstest.WriteLines(t, resumed, now(strings.ReplaceAll(lineHead, harnesstest.ConversationA, harnesstest.ConversationB), ""), now(lineText, "resumed"), now(lineUser, "more"))
	harnesstest.WantMessages(t, harnesstest.ReadOn(t, g, conv, batch), "F resumed")
}

func TestGeminisMissingFolderIsWatchedFor(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	g, conv := Harness{Home: home}, sessions.Conversation{Session: harnesstest.Session, ID: harnesstest.ConversationA, Cwd: "/srv/new", Started: time.Now()}
	batch := harnesstest.ReadOn(t, g, conv, sessions.TranscriptBatch{})
	if want := filepath.Join(home, ".gemini", "projects.json"); !slices.Equal(batch.WatchFiles, []string{want}) {
		t.Errorf("watches %q; want %q", batch.WatchFiles, want)
	}
}

func TestInvalidGeminiCursorIsRefused(t *testing.T) {
	t.Parallel()
	g, conv, _ := newFolder(t, "[]")
	for _, offset := range []sessions.Offset{"x", "{}", `{"since":"2026-11-30T10:43:18Z","now":"../x"}`} {
		if _, err := g.ReadTranscript(t.Context(), conv, offset); err == nil {
			t.Errorf("%q is taken for a place", offset)
		}
	}
}
