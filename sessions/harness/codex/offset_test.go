package codex

import "testing"

func TestOffsetsOfTheVersionBeforeAreRead(t *testing.T) {
	t.Parallel()
	p, err := parseOffset("/home/a@b/.codex@12")
	if err != nil || p.Home != "/home/a@b/.codex" || p.HistoryOffset != 12 {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = parseOffset(`{"talk":"a","now":"b","at":3,"reports":1700000000,"file":"/f"}`)
	if err != nil || p.Conversation != "b" || p.Offset != 3 || p.HistoryChanged != 1700000000 || p.File != "/f" {
		t.Errorf("%+v, %v", p, err)
	}
}
