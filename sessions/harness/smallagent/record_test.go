package smallagent

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func newRecord(t *testing.T) *conversation {
	t.Helper()
	c, err := createConversation(t.TempDir(), "c1")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close() })
	return c
}

func add(t *testing.T, c *conversation, texts ...string) {
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

func TestReadRecordGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	c := newRecord(t)
	path := RecordPath(c.dir, c.id)
	long := strings.Repeat("<&> 日本\n", 40_000)
	add(t, c, "one", long)
	entries, offset, err := ReadRecord(path, 0)
	if err != nil || len(entries) != 2 || entries[1].Text != long || entries[1].Seq != 2 {
		t.Fatalf("%d entries, %v", len(entries), err)
	}
	if entries, again, err := ReadRecord(path, offset); err != nil || entries != nil || again != offset {
		t.Errorf("%+v, %d, %v at the end", entries, again, err)
	}
	add(t, c, "three")
	if entries, _, err := ReadRecord(path, offset); err != nil || len(entries) != 1 || entries[0].Text != "three" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestReadRecordLeavesACutLastLineForLater(t *testing.T) {
	t.Parallel()
	c := newRecord(t)
	path := RecordPath(c.dir, c.id)
	add(t, c, "one")
	appendRaw(t, c, `{"type":"us`)
	entries, offset, err := ReadRecord(path, 0)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%+v, %v", entries, err)
	}
	appendRaw(t, c, `er","text":"two"}`+"\n")
	if entries, _, err = ReadRecord(path, offset); err != nil || len(entries) != 1 || entries[0].Text != "two" {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestACutLineDoesNotSpoilTheNext(t *testing.T) {
	t.Parallel()
	c := newRecord(t)
	add(t, c, "one")
	appendRaw(t, c, `{"type":"us`)
	again, err := resumeConversation(c.dir, c.id)
	if err != nil {
		t.Fatal(err)
	}
	defer again.close()
	add(t, again, "two", "three")
	entries, _, err := ReadRecord(RecordPath(c.dir, c.id), 0)
	if err != nil || len(entries) != 3 || entries[1].Text != "two" || entries[2].Seq != 3 {
		t.Errorf("%+v, %v", entries, err)
	}
}

func TestReadRecordSaysWhatItCannotRead(t *testing.T) {
	t.Parallel()
	c := newRecord(t)
	if _, _, err := ReadRecord(filepath.Join(c.dir, "none.jsonl"), 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	for _, offset := range []int64{-1, 1} {
		if _, _, err := ReadRecord(RecordPath(c.dir, c.id), offset); err == nil {
			t.Errorf("offset %d of an empty file: no error", offset)
		}
	}
}

func TestAConversationIsCreatedOnce(t *testing.T) {
	t.Parallel()
	c := newRecord(t)
	if _, err := createConversation(c.dir, c.id); !errors.Is(err, errExists) {
		t.Errorf("a second one: %v", err)
	}
}

func TestWhatCannotBeRecordedIsNotTaken(t *testing.T) {
	t.Parallel()
	c := newRecord(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no full device here")
	}
	defer full.Close()
	kept := c.file
	c.file = full
	a := &agent{conv: c}
	a.box.paste("precious")
	a.enter(a.startedAt)
	c.file = kept
	if a.box.text() != "precious" || len(a.queue) != 0 || a.turn != nil {
		t.Errorf("the box holds %q, %d wait", a.box.text(), len(a.queue))
	}
}
