package store

import "testing"

func TestTheRingKeepsTheLastItems(t *testing.T) {
	t.Parallel()
	r := ring[int]{max: 3}
	for range 10 {
		r.add(func(seq int) int { return seq })
	}
	if got := r.since(0); len(got) != 3 || got[0] != 8 {
		t.Errorf("kept %v", got)
	}
	if got := r.since(9); len(got) != 1 || got[0] != 10 {
		t.Errorf("since 9: %v", got)
	}
	if got := r.since(10); len(got) != 0 {
		t.Errorf("since 10: %v", got)
	}
}
