package smallagent

import "testing"

func TestOffsetsOfTheVersionBeforeAreRead(t *testing.T) {
	t.Parallel()
	p, err := parseOffset("c1@12")
	if err != nil || p.Conversation != "c1" || p.Offset != 12 {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = parseOffset(`{"talk":"c1","now":"c2","at":3,"queued":1}`)
	if err != nil || p.Recorded != "c1" || p.Conversation != "c2" || p.Offset != 3 || p.Queued != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}
