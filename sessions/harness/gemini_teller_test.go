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
)

// Lines as Gemini CLI 0.61.0 writes them, shortened. The talk has a text before a tool, an error, a cancelled turn, and what is
// written again: a message once its tool is done, and the whole history.
const (
	geminiHead   = `{"sessionId":"` + talkA + `","projectHash":"h","startTime":"2026-11-30T10:43:14.414Z","lastUpdated":"2026-11-30T10:43:14.414Z","kind":"main"}`
	geminiSet    = `{"$set":{"lastUpdated":"2026-11-30T10:43:14.611Z"}}`
	geminiStory  = `{"$set":{"messages":[{"id":"c0","timestamp":"2026-11-30T10:43:14.414Z","type":"user","content":[{"text":"<session_context>x</session_context>"}]},{"id":"g1","timestamp":"2026-11-30T10:43:14.641Z","type":"gemini","content":[{"text":"one"}]}]}}`
	geminiUser   = `{"id":"u-%[1]s","timestamp":"2026-11-30T10:43:16.572Z","type":"user","content":[{"text":"%[1]s"}]}`
	geminiText   = `{"id":"g-%[1]s","timestamp":"2026-11-30T10:43:18.549Z","type":"gemini","content":"%[1]s","thoughts":[],"tokens":{"input":1,"output":1,"cached":0,"thoughts":0,"tool":0,"total":2},"model":"gemini-3.1-pro-preview"}`
	geminiCalled = `{"id":"g-%[1]s","timestamp":"2026-11-30T10:43:18.549Z","type":"gemini","content":"%[1]s","thoughts":[],"tokens":{"total":2},"model":"m","toolCalls":[{"id":"run_shell_command_1","name":"run_shell_command","args":{"command":"echo hi"},"result":[{"functionResponse":{"id":"run_shell_command_1"}}],"status":"success"}]}`
	geminiResult = `{"id":"r1","timestamp":"2026-11-30T10:43:18.723Z","type":"user","content":[{"functionResponse":{"id":"run_shell_command_1","name":"run_shell_command","response":{"output":"hi"}}}]}`
	geminiError  = `{"id":"e-%[1]s","timestamp":"2026-11-30T10:53:58.601Z","type":"error","content":"%[1]s"}`
	geminiInfo   = `{"id":"i-%[1]s","timestamp":"2026-11-30T10:53:58.601Z","type":"info","content":"%[1]s"}`
)

func geminiTalk() []string {
	return []string{geminiHead, geminiStory, fmt.Sprintf(geminiUser, "hello"), geminiSet, fmt.Sprintf(geminiText, "one"), geminiSet,
		fmt.Sprintf(geminiUser, "run it"), geminiStory, fmt.Sprintf(geminiText, "I look"), geminiSet, fmt.Sprintf(geminiCalled, "I look"),
		geminiResult, geminiSet, fmt.Sprintf(geminiText, "done"), fmt.Sprintf(geminiError, "Unknown command"), fmt.Sprintf(geminiUser, "fail"),
		fmt.Sprintf(geminiError, "[API Error: 400]"), fmt.Sprintf(geminiInfo, "This request failed."), fmt.Sprintf(geminiUser, "wait"),
		fmt.Sprintf(geminiText, "I begin"), fmt.Sprintf(geminiInfo, geminiCancelled), fmt.Sprintf(geminiUser, "last"), fmt.Sprintf(geminiText, "bye")}
}

// geminiHeard is what the talk says, by its lines: done is final because the next text of the user comes after it.
var geminiHeard = []string{"F one", "S I look", "F done", "E [API Error: 400]", "F I begin"}

// listen reads on from a place.
func listen(t interface{ Fatal(...any) }, h sessions.Teller, talk sessions.Conversation, told sessions.Told) sessions.Told {
	next, err := h.Told(context.Background(), talk, told.Next)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func geminiChat(dir, id string) string {
	return filepath.Join(dir, "chats", "session-2026-11-30T10-43-"+id[:8]+".jsonl")
}

func TestWhatGeminiSaysIsTheSameWheneverItIsRead(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		g, talk, dir := geminiFolder(t, "[]")
		talk.Started = time.Date(2026, 11, 30, 10, 43, 0, 0, time.UTC)
		writeLines(t, geminiChat(dir, talkA))
		if err := os.Chtimes(filepath.Join(dir, "logs.json"), talk.Started, talk.Started); err != nil {
			t.Fatal(err) // nobody has said /clear lately: the processes need not be looked at
		}
		whole := strings.Join(geminiTalk(), "\n") + "\n"
		begin := sessions.Told{Next: geminiSpot{Since: talk.Started, Now: talkA, Dir: dir, Asked: talk.Started.UnixNano()}.String()}
		told := begin
		var all []sessions.Said
		for at := 0; at < len(whole); {
			at = min(len(whole), at+rapid.IntRange(1, 700).Draw(r, "bytes"))
			if err := os.WriteFile(geminiChat(dir, talkA), []byte(whole[:at]), 0o600); err != nil {
				t.Fatal(err)
			}
			told = listen(t, g, talk, told)
			all = append(all, told.Said...)
			if !json.Valid([]byte(told.Next)) {
				t.Fatalf("the place is %q", told.Next)
			}
		}
		if got := heard(sessions.Told{Said: all}); !slices.Equal(got, geminiHeard) {
			r.Errorf("heard %q; want %q", got, geminiHeard)
		}
		if !told.Turn.Working {
			r.Error("the last turn does not run")
		}
		once := listen(t, g, talk, begin)
		if !slices.Equal(once.Said, all) {
			r.Errorf("read at once it is %+v, was %+v", once.Said, all)
		}
	})
}

func TestGeminisLastTextIsFinalWhenItsScreenWaitsForText(t *testing.T) {
	t.Parallel()
	g, talk, dir := geminiFolder(t, "[]")
	talk.Started = time.Date(2026, 11, 30, 10, 43, 0, 0, time.UTC)
	idle := false
	talk.Idle = func(context.Context) (bool, error) { return idle, nil }
	lines := geminiTalk()[:9] // up to the text before the tool
	writeLines(t, geminiChat(dir, talkA), lines...)
	told := listen(t, g, talk, sessions.Told{})
	wantHeard(t, told, "F one")
	if !told.Turn.Working {
		t.Error("no turn runs while a tool is asked for")
	}
	lines = append(lines, geminiTalk()[9:14]...)
	writeLines(t, geminiChat(dir, talkA), lines...)
	idle = true
	told = listen(t, g, talk, told)
	wantHeard(t, told, "S I look", "F done")
	if told.Turn.Working {
		t.Error("the turn goes on")
	}
	writeLines(t, geminiChat(dir, talkA), append(lines, geminiTalk()[14:19]...)...)
	wantHeard(t, listen(t, g, talk, told), "E [API Error: 400]")
}

func TestGeminiIsHeardAfterAClearAndInTheFileOfAResumedConversation(t *testing.T) {
	t.Parallel()
	g, talk, dir := geminiFolder(t, "[]")
	talk.Started = time.Now().Add(-time.Minute)
	talk.Idle = func(context.Context) (bool, error) { return false, nil }
	now := func(format, text string) string {
		return strings.NewReplacer("2026-11-30T10:43:18.549Z", time.Now().UTC().Format(time.RFC3339Nano),
			"2026-11-30T10:43:14.414Z", time.Now().UTC().Format(time.RFC3339Nano)).Replace(strings.ReplaceAll(format, "%[1]s", text))
	}
	writeLines(t, geminiChat(dir, talkA), geminiHead, now(geminiText, "before"))
	told := listen(t, g, talk, sessions.Told{})
	wantHeard(t, told)
	entry := `[{"sessionId":"` + talkA + `","type":"user","message":"/clear","timestamp":"` + time.Now().UTC().Format(time.RFC3339Nano) + `"}]`
	writeLines(t, filepath.Join(dir, "logs.json"), entry)
	writeLines(t, geminiChat(dir, talkB), now(strings.ReplaceAll(geminiHead, talkA, talkB), ""), now(geminiUser, "go"), now(geminiText, "after"), now(geminiUser, "on"))
	told = listen(t, g, talk, told)
	wantHeard(t, told, "F before", "F after")
	if !slices.Contains(told.Watch, geminiChat(dir, talkB)) {
		t.Errorf("watches %q", told.Watch)
	}
	resumed := filepath.Join(dir, "chats", "session-2026-11-30T10-59-"+talkB[:8]+".jsonl")
	writeLines(t, resumed, now(strings.ReplaceAll(geminiHead, talkA, talkB), ""), now(geminiText, "resumed"), now(geminiUser, "more"))
	wantHeard(t, listen(t, g, talk, told), "F resumed")
}

func TestAFolderThatIsNewToGeminiIsWaitedFor(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	g, talk := Gemini{Home: home}, sessions.Conversation{Session: sessionA, ID: talkA, Cwd: "/srv/new", Started: time.Now()}
	told := listen(t, g, talk, sessions.Told{})
	if want := filepath.Join(home, ".gemini", "projects.json"); !slices.Equal(told.Watch, []string{want}) {
		t.Errorf("watches %q; want %q", told.Watch, want)
	}
}

func TestAPlaceThatIsNotGeminisIsRefused(t *testing.T) {
	t.Parallel()
	g, talk, _ := geminiFolder(t, "[]")
	for _, place := range []string{"x", "{}", `{"since":"2026-11-30T10:43:18Z","now":"../x"}`} {
		if _, err := g.Told(t.Context(), talk, place); err == nil {
			t.Errorf("%q is taken for a place", place)
		}
	}
}
