package claude

import (
	"testing"

	"the-loop/sessions/harness/harnesstest"
)

func TestOffsetsOfTheVersionBeforeAreRead(t *testing.T) {
	t.Parallel()
	p, err := parseOffset("7:" + harnesstest.ConversationA + "@12")
	if err != nil || p.Reports != 7 || p.Conversation != harnesstest.ConversationA || p.Offset != 12 {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = parseOffset(`{"talk":"a","now":"b","at":3,"reports":9,"since":"2026-01-02T03:04:05Z","turn":{"working":true}}`)
	if err != nil || p.Recorded != "a" || p.Conversation != "b" || p.Offset != 3 || p.Reports != 9 || !p.Turn.Working {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestWhatIsReadFromAnOffsetOfTheInputIsWhatCameAfterIt(t *testing.T) {
	t.Parallel()
	k := newTranscriptEnv(t)
	k.appendMessage(harnesstest.ConversationA, lineFinal, "before")
	since := k.offset()
	k.appendMessage(harnesstest.ConversationA, lineFinal, "after")
	harnesstest.WantMessages(t, k.read(since), "F after")
}
