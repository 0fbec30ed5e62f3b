package smallagent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func newTestConversation(t *testing.T) *conversation {
	t.Helper()
	c, err := createConversation(t.TempDir(), "c1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close() })
	return c
}

func addEntries(t *testing.T, c *conversation, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err := c.add(Entry{Type: TypeUser, Text: text}); err != nil {
			t.Fatal(err)
		}
	}
}

func appendRaw(t *testing.T, c *conversation, raw string) {
	t.Helper()
	if _, err := c.file.WriteString(raw); err != nil {
		t.Fatal(err)
	}
}

func TestReadTranscriptContinuesFromAnOffset(t *testing.T) {
	t.Parallel()
	c := newTestConversation(t)
	path := TranscriptPath(c.dir, c.id)
	long := strings.Repeat("<&> 日本\n", 40_000)
	addEntries(t, c, "one", long)
	entries, offset, err := ReadTranscript(path, 0)
	if err != nil || len(entries) != 2 || entries[1].Text != long || entries[1].Seq != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if entries, again, err := ReadTranscript(path, offset); err != nil || entries != nil || again != offset {
		t.Errorf("%+v, %d, %v at the end", entries, again, err)
	}
	addEntries(t, c, "three")
	if entries, _, err := ReadTranscript(path, offset); err != nil || len(entries) != 1 || entries[0].Text != "three" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestReadTranscriptLeavesATornLastLineForLater(t *testing.T) {
	t.Parallel()
	c := newTestConversation(t)
	path := TranscriptPath(c.dir, c.id)
	addEntries(t, c, "one")
	appendRaw(t, c, `{"type":"us`)
	entries, offset, err := ReadTranscript(path, 0)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%+v, %v", entries, err)
	}
	appendRaw(t, c, `er","text":"two"}`+"\n")
	if entries, _, err = ReadTranscript(path, offset); err != nil || len(entries) != 1 || entries[0].Text != "two" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestATornLineDoesNotSpoilTheNext(t *testing.T) {
	t.Parallel()
	c := newTestConversation(t)
	addEntries(t, c, "one")
	appendRaw(t, c, `{"type":"us`)
	again, err := resumeConversation(c.dir, c.id)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	addEntries(t, again, "two", "three")
	entries, _, err := ReadTranscript(TranscriptPath(c.dir, c.id), 0)
	if err != nil || len(entries) != 3 || entries[1].Text != "two" || entries[2].Seq != 3 {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestReadTranscriptReportsWhatItCannotRead(t *testing.T) {
	t.Parallel()
	c := newTestConversation(t)
	if _, _, err := ReadTranscript(filepath.Join(c.dir, "none.jsonl"), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, offset := range []int64{-1, 1} {
		if _, _, err := ReadTranscript(TranscriptPath(c.dir, c.id), offset); err == nil {
			t.Errorf("offset %d of an empty file: no error", offset)
		}
	}
}

func TestAConversationIsCreatedOnce(t *testing.T) {
	t.Parallel()
	c := newTestConversation(t)
	if _, err := createConversation(c.dir, c.id); !errors.Is(err, errConversationExists) {
		t.Errorf("a second one: %v", err)
	}
}

func TestTextThatCannotBeRecordedIsNotAccepted(t *testing.T) {
	t.Parallel()
	c := newTestConversation(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no full device here")
	}
	defer full.Close()
	kept := c.file
	c.file = full
	a := &agent{conv: c}
	a.box.paste("precious")
	a.handleEnter(a.startedAt)
	c.file = kept
	if a.box.text() != "precious" || len(a.queue) != 0 || a.turn != nil {
		t.Errorf("the box holds %q, %d wait", a.box.text(), len(a.queue))
	}
}
