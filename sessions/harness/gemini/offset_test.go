package gemini

import (
	"testing"

	"the-loop/sessions/harness/harnesstest"
)

func TestOffsetsOfTheVersionBeforeAreRead(t *testing.T) {
	t.Parallel()
	p, err := parseOffset(harnesstest.ConversationA + "@12")
	if err != nil || p.StartID != harnesstest.ConversationA || p.Logged != 12 {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = parseOffset(`{"since":"2026-11-30T10:43:18Z","now":"a","dir":"/d","asked":5,"files":{"f":3},"lastly":"m"}`)
	if err != nil || p.Conversation != "a" || p.Dir != "/d" || p.LogSeen != 5 || p.Files["f"] != 3 || p.LastKey != "m" {
		t.Errorf("%+v, %v", p, err)
	}
}
