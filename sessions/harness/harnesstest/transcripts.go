package harnesstest

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"the-loop/sessions"
)

// Ids for tests.
const (
	Session       = "5e551011-0000-4000-8000-000000000001"
	ConversationA = "aaaaaaaa-0000-4000-8000-000000000001"
	ConversationB = "bbbbbbbb-0000-4000-8000-000000000002"
)

// WriteLines makes a file of the lines, with its folder.
func WriteLines(t *testing.T, path string, lines ...string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// DescribeMessages returns each message with what it is in front: F final, S a step, E an error.
func DescribeMessages(b sessions.TranscriptBatch) []string {
	var all []string
	for _, m := range b.Messages {
		kind := "S"
		if m.Failed {
			kind = "E"
		} else if m.Final {
			kind = "F"
		}
		all = append(all, kind+" "+m.Text)
	}
	return all
}

// WantMessages compares the messages of a batch with those wanted, see [DescribeMessages].
func WantMessages(t *testing.T, b sessions.TranscriptBatch, want ...string) {
	t.Helper()
	if got := DescribeMessages(b); !slices.Equal(got, want) {
		t.Errorf("messages %q; want %q", got, want)
	}
	keys := map[string]bool{}
	for _, m := range b.Messages {
		if m.Key == "" || keys[m.Key] || m.At.IsZero() {
			t.Errorf("%q has the key %q and the time %s", m.Text, m.Key, m.At)
		}
		keys[m.Key] = true
	}
}

// WantTurn checks whether a turn runs as of the end of a batch.
func WantTurn(t *testing.T, what string, b sessions.TranscriptBatch, working bool) {
	t.Helper()
	turn := b.Turn
	if turn.Working != working {
		t.Errorf("%s: working is %t; want %t", what, turn.Working, working)
	}
	if working && turn.Since.IsZero() || !working && !turn.Since.IsZero() && turn.Until.Before(turn.Since) {
		t.Errorf("%s: the turn is from %s to %s", what, turn.Since, turn.Until)
	}
}

// ReadOn reads the transcript of a conversation on from a batch.
func ReadOn(t interface{ Fatal(...any) }, h sessions.Harness, c sessions.Conversation, b sessions.TranscriptBatch) sessions.TranscriptBatch {
	next, err := h.Capabilities().ReadTranscript(context.Background(), c, b.Next)
	if err != nil {
		t.Fatal(err)
	}
	return next
}
