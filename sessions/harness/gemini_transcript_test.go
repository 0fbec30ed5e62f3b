package harness

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
	"the-loop/sessions/harness/transcript"
)

// Lines as Gemini CLI 0.61.0 writes them, shortened. The talk has a text before a tool, an error, a cancelled turn, and what is
// written again: a message once its tool is done, and the whole history.
const (
	geminiHead     = `{"sessionId":"` + conversationA + `","projectHash":"h","startTime":"2026-11-30T10:43:14.414Z","lastUpdated":"2026-11-30T10:43:14.414Z","kind":"main"}`
	geminiSet      = `{"$set":{"lastUpdated":"2026-11-30T10:43:14.611Z"}}`
	geminiHistory  = `{"$set":{"messages":[{"id":"c0","timestamp":"2026-11-30T10:43:14.414Z","type":"user","content":[{"text":"<session_context>x</session_context>"}]},{"id":"g1","timestamp":"2026-11-30T10:43:14.641Z","type":"gemini","content":[{"text":"one"}]}]}}`
	geminiUser     = `{"id":"u-%[1]s","timestamp":"2026-11-30T10:43:16.572Z","type":"user","content":[{"text":"%[1]s"}]}`
	geminiText     = `{"id":"g-%[1]s","timestamp":"2026-11-30T10:43:18.549Z","type":"gemini","content":"%[1]s","thoughts":[],"tokens":{"input":1,"output":1,"cached":0,"thoughts":0,"tool":0,"total":2},"model":"gemini-3.1-pro-preview"}`
	geminiToolCall = `{"id":"g-%[1]s","timestamp":"2026-11-30T10:43:18.549Z","type":"gemini","content":"%[1]s","thoughts":[],"tokens":{"total":2},"model":"m","toolCalls":[{"id":"run_shell_command_1","name":"run_shell_command","args":{"command":"echo hi"},"result":[{"functionResponse":{"id":"run_shell_command_1"}}],"status":"success"}]}`
	geminiResult   = `{"id":"r1","timestamp":"2026-11-30T10:43:18.723Z","type":"user","content":[{"functionResponse":{"id":"run_shell_command_1","name":"run_shell_command","response":{"output":"hi"}}}]}`
	geminiError    = `{"id":"e-%[1]s","timestamp":"2026-11-30T10:53:58.601Z","type":"error","content":"%[1]s"}`
	geminiInfo     = `{"id":"i-%[1]s","timestamp":"2026-11-30T10:53:58.601Z","type":"info","content":"%[1]s"}`
)

func geminiTranscript() []string {
	return []string{geminiHead, geminiHistory, fmt.Sprintf(geminiUser, "hello"), geminiSet, fmt.Sprintf(geminiText, "one"), geminiSet,
		fmt.Sprintf(geminiUser, "run it"), geminiHistory, fmt.Sprintf(geminiText, "I look"), geminiSet, fmt.Sprintf(geminiToolCall, "I look"),
		geminiResult, geminiSet, fmt.Sprintf(geminiText, "done"), fmt.Sprintf(geminiError, "Unknown command"), fmt.Sprintf(geminiUser, "fail"),
		fmt.Sprintf(geminiError, "[API Error: 400]"), fmt.Sprintf(geminiInfo, "This request failed."), fmt.Sprintf(geminiUser, "wait"),
		fmt.Sprintf(geminiText, "I begin"), fmt.Sprintf(geminiInfo, geminiCancelled), fmt.Sprintf(geminiUser, "last"), fmt.Sprintf(geminiText, "bye")}
}

// wantGeminiMessages is what the talk says, by its lines: done is final because the next text of the user comes after it.
var wantGeminiMessages = []string{"F one", "S I look", "F done", "E [API Error: 400]", "F I begin"}

// readTranscript reads on from a place.
func readTranscript(t interface{ Fatal(...any) }, h sessions.Harness, talk sessions.Conversation, told sessions.TranscriptBatch) sessions.TranscriptBatch {
	next, err := h.Capabilities().ReadTranscript(context.Background(), talk, told.Next)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func geminiChatFile(dir, id string) string {
	return filepath.Join(dir, "chats", "session-2026-11-30T10-43-"+id[:8]+".jsonl")
}

func TestGeminisMessagesAreTheSameWheneverTheyAreRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		g, talk, dir := geminiFolder(t, "[]")
		talk.Started = time.Date(2026, 11, 30, 10, 43, 0, 0, time.UTC)
		writeLines(t, geminiChatFile(dir, conversationA))
		if err := os.Chtimes(filepath.Join(dir, "logs.json"), talk.Started, talk.Started); err != nil {
			t.Fatal(err) // nobody has said /clear lately: the processes need not be looked at
		}
		whole := strings.Join(geminiTranscript(), "\n") + "\n"
		begin := sessions.TranscriptBatch{Next: transcript.Encode(geminiOffset{Since: talk.Started, Conversation: conversationA, Dir: dir, LogSeen: talk.Started.UnixNano()})}
		told := begin
		var all []sessions.AgentMessage
		for at := 0; at < len(whole); {
			at = min(len(whole), at+rapid.IntRange(1, 700).Draw(r, "bytes"))
			if err := os.WriteFile(geminiChatFile(dir, conversationA), []byte(whole[:at]), 0o600); err != nil {
				t.Fatal(err)
			}
			told = readTranscript(t, g, talk, told)
			all = append(all, told.Messages...)
			if !json.Valid([]byte(told.Next)) {
				t.Fatalf("the place is %q", told.Next)
			}
		}
		if got := describeMessages(sessions.TranscriptBatch{Messages: all}); !slices.Equal(got, wantGeminiMessages) {
			r.Errorf("heard %q; want %q", got, wantGeminiMessages)
		}
		if !told.Turn.Working {
			r.Error("the last turn does not run")
		}
		once := readTranscript(t, g, talk, begin)
		if !slices.Equal(once.Messages, all) {
			r.Errorf("read at once it is %+v, was %+v", once.Messages, all)
		}
	})
}

func TestGeminisLastTextIsFinalWhenItsScreenWaitsForText(t *testing.T) {
	t.Parallel()
	g, talk, dir := geminiFolder(t, "[]")
	talk.Started = time.Date(2026, 11, 30, 10, 43, 0, 0, time.UTC)
	idle := false
	talk.IsIdle = func(context.Context) (bool, error) { return idle, nil }
	lines := geminiTranscript()[:9] // up to the text before the tool
	writeLines(t, geminiChatFile(dir, conversationA), lines...)
	told := readTranscript(t, g, talk, sessions.TranscriptBatch{})
	wantMessages(t, told, "F one")
	if !told.Turn.Working {
		t.Error("no turn runs while a tool is asked for")
	}
	lines = append(lines, geminiTranscript()[9:14]...)
	writeLines(t, geminiChatFile(dir, conversationA), lines...)
	idle = true
	told = readTranscript(t, g, talk, told)
	wantMessages(t, told, "S I look", "F done")
	if told.Turn.Working {
		t.Error("the turn goes on")
	}
	writeLines(t, geminiChatFile(dir, conversationA), append(lines, geminiTranscript()[14:19]...)...)
	wantMessages(t, readTranscript(t, g, talk, told), "E [API Error: 400]")
}

func TestGeminiIsReadAfterAClearAndInTheFileOfAResumedConversation(t *testing.T) {
	t.Parallel()
	g, talk, dir := geminiFolder(t, "[]")
	talk.Started = time.Now().Add(-time.Minute)
	talk.IsIdle = func(context.Context) (bool, error) { return false, nil }
	now := func(format, text string) string {
		return strings.NewReplacer("2026-11-30T10:43:18.549Z", time.Now().UTC().Format(time.RFC3339Nano),
			"2026-11-30T10:43:14.414Z", time.Now().UTC().Format(time.RFC3339Nano)).Replace(strings.ReplaceAll(format, "%[1]s", text))
	}
	writeLines(t, geminiChatFile(dir, conversationA), geminiHead, now(geminiText, "before"))
	told := readTranscript(t, g, talk, sessions.TranscriptBatch{})
	wantMessages(t, told)
	entry := `[{"sessionId":"` + conversationA + `","type":"user","message":"/clear","timestamp":"` + time.Now().UTC().Format(time.RFC3339Nano) + `"}]`
	writeLines(t, filepath.Join(dir, "logs.json"), entry)
	writeLines(t, geminiChatFile(dir, conversationB), now(strings.ReplaceAll(geminiHead, conversationA, conversationB), ""), now(geminiUser, "go"), now(geminiText, "after"), now(geminiUser, "on"))
	told = readTranscript(t, g, talk, told)
	wantMessages(t, told, "F before", "F after")
	if !slices.Contains(told.WatchFiles, geminiChatFile(dir, conversationB)) {
		t.Errorf("watches %q", told.WatchFiles)
	}
	resumed := filepath.Join(dir, "chats", "session-2026-11-30T10-59-"+conversationB[:8]+".jsonl")
	writeLines(t, resumed, now(strings.ReplaceAll(geminiHead, conversationA, conversationB), ""), now(geminiText, "resumed"), now(geminiUser, "more"))
	wantMessages(t, readTranscript(t, g, talk, told), "F resumed")
}

func TestGeminisMissingFolderIsWatchedFor(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	g, talk := Gemini{Home: home}, sessions.Conversation{Session: sessionA, ID: conversationA, Cwd: "/srv/new", Started: time.Now()}
	told := readTranscript(t, g, talk, sessions.TranscriptBatch{})
	if want := filepath.Join(home, ".gemini", "projects.json"); !slices.Equal(told.WatchFiles, []string{want}) {
		t.Errorf("watches %q; want %q", told.WatchFiles, want)
	}
}

func TestInvalidGeminiCursorIsRefused(t *testing.T) {
	t.Parallel()
	g, talk, _ := geminiFolder(t, "[]")
	for _, place := range []sessions.Offset{"x", "{}", `{"since":"2026-11-30T10:43:18Z","now":"../x"}`} {
		if _, err := g.ReadTranscript(t.Context(), talk, place); err == nil {
			t.Errorf("%q is taken for a place", place)
		}
	}
}
