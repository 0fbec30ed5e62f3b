package opencode

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/transcript"
)

// transcriptRows is how OpenCode 1.18.33's database grew: a turn with a tool, one that failed, one that a person ended, one of
// a program that was killed, and one after it.
func transcriptRows() []message {
	const conv = "ses_dd3e5b7d8ffeO5Ucu0XQ6FZ39d"
	user := func(n int) message {
		return message{Conversation: conv, ID: fmt.Sprintf("msg_%02d", n), At: int64(1796036249858 + n), Role: "user", Summary: "object", Text: "go"}
	}
	agent := func(n int, text, finish, failure, errorText string) message {
		r := message{Conversation: conv, ID: fmt.Sprintf("msg_%02d", n), At: int64(1796036249858 + n), Role: "assistant", Finish: finish,
			Error: failure, ErrorText: errorText, Text: text}
		if finish != "" || failure != "" {
			r.Completed = r.At + 1
		}
		return r
	}
	return []message{user(1), agent(2, "I look", "tool-calls", "", ""), agent(3, "done", "stop", "", ""),
		user(4), agent(5, "", "", "APIError", "as asked"), user(6), agent(7, "I begin", "", abortedError, "The operation was aborted."),
		user(8), agent(9, "half a th", "", "", ""), user(10), agent(11, "after it", "stop", "", ""),
		agent(12, "what was said until now", "stop", "", ""), user(13)}
}

var wantMessages = []string{"S I look", "F done", "E as asked", "F I begin", "S half a th", "F after it", "F what was said until now"}

// rowsAtMoment is the record as it was at one of its moments: each message comes without an end first.
func rowsAtMoment(rows []message, moment int) []message {
	n, half := moment/2, moment%2 == 1
	now := slices.Clone(rows[:n])
	if half && n < len(rows) {
		r := rows[n]
		if r.Finish, r.Error, r.ErrorText, r.Completed = "", "", "", 0; r.Role == "assistant" {
			r.Text = r.Text[:len(r.Text)/2]
		}
		now = append(now, r)
	}
	return now
}

// rowsAfter is what the database says of messages after a mark.
func rowsAfter(rows []message, mark position) []message {
	return slices.DeleteFunc(slices.Clone(rows), func(r message) bool { return r.At < mark.At || r.At == mark.At && r.ID <= mark.ID })
}

func TestOpenCodesMessagesAreTheSameWheneverTheyAreRead(t *testing.T) {
	t.Parallel()
	rows := transcriptRows()
	id := rows[0].Conversation
	rapid.Check(t, func(r *rapid.T) {
		s := transcriptOffset{Since: time.UnixMilli(1), LastRead: map[string]position{id: {}}}
		var all []sessions.AgentMessage
		var batch sessions.TranscriptBatch
		for moment := 0; moment < 2*len(rows); {
			moment = min(2*len(rows), moment+rapid.IntRange(1, 7).Draw(r, "moments"))
			batch = sessions.TranscriptBatch{Turn: s.Turn}
			s.addMessages(id, rowsAfter(rowsAtMoment(rows, moment), s.LastRead[id]), &batch)
			all = append(all, batch.Messages...)
			var err error
			if s, err = startOffset(sessions.Conversation{}, transcript.Encode(s)); err != nil {
				t.Fatal(err)
			}
		}
		if got := harnesstest.DescribeMessages(sessions.TranscriptBatch{Messages: all}); !slices.Equal(got, wantMessages) {
			r.Errorf("heard %q; want %q", got, wantMessages)
		}
		if !batch.Turn.Working {
			r.Error("the last turn does not run")
		}
		keys := map[string]bool{}
		for _, m := range all {
			if keys[m.Key] {
				r.Errorf("%q has a key twice", m.Key)
			}
			keys[m.Key] = true
		}
	})
}

// logLines are lines of OpenCode 1.18.33's log, shortened; another program writes into it too.
const logLines = `timestamp=2026-11-30T10:57:29.639Z level=INFO run=00129bae message=created id=ses_first slug=cosmic-meadow version=1.18.33 projectID=global directory=/srv/w path=srv/w workspaceID=undefined parentID=undefined title="New session"
timestamp=2026-11-30T10:57:31.315Z level=INFO run=00129bae message=loop session.id=ses_first step=0
timestamp=2026-11-30T10:57:40.000Z level=INFO run=77777777 message=loop session.id=ses_strange step=0
timestamp=2026-11-30T10:57:47.473Z level=INFO run=00129bae message=process session.id=ses_first messageID=msg_1
timestamp=2026-11-30T10:57:48.000Z level=INFO run=00129bae message=created id=ses_aside slug=s version=1.18.33 projectID=global directory=/srv/w path=srv/w workspaceID=undefined parentID=ses_first title="a task"
timestamp=2026-11-30T10:57:48.001Z level=INFO run=00129bae message=loop session.id=ses_aside step=0
timestamp=2026-11-30T10:57:48.118Z level=INFO run=00129bae message="exiting loop" session.id=ses_first
`

const logNew = `timestamp=2026-11-30T10:59:16.620Z level=INFO run=00129bae message=created id=ses_second slug=swift-island version=1.18.33 projectID=global directory=/srv/w path=srv/w workspaceID=undefined parentID=undefined title="New session"
timestamp=2026-11-30T10:59:16.678Z level=INFO run=00129bae message=loop session.id=ses_second step=0
`

func TestOpenCodesLogShowsWhichConversationThePaneIsIn(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "opencode.log")
	now := func(want string) {
		t.Helper()
		if got, err := currentConversation(log, "ses_first"); err != nil || got != want {
			t.Errorf("now it is %q, %v; want %q", got, err, want)
		}
	}
	now("ses_first") // there is no log
	for _, step := range []struct{ lines, want string }{{logLines, "ses_first"}, {logNew, "ses_second"}} {
		f, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = f.WriteString(step.lines); err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		now(step.want)
	}
}

func TestTailOfALongLogBeginsWithAWholeLine(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "l")
	if err := os.WriteFile(log, []byte("first line\nsecond line\nthird\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for size, want := range map[int64]int64{100: 0, 10: 23, 20: 11} {
		if got, err := tailStart(log, size); err != nil || got != want {
			t.Errorf("of %d bytes: %d, %v; want %d", size, got, err, want)
		}
	}
}

func TestInvalidOpenCodeCursorIsRefused(t *testing.T) {
	t.Parallel()
	for _, offset := range []sessions.Offset{"x", "{}", `{"since":"2026-11-30T10:43:18Z","logAt":-1}`} {
		if _, err := (Harness{}).ReadTranscript(t.Context(), sessions.Conversation{Session: harnesstest.Session}, offset); err == nil {
			t.Errorf("%q is taken for a place", offset)
		}
	}
}
