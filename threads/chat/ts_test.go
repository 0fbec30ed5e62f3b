package chat_test

import (
	"slices"
	"testing"

	"the-loop/threads/chat"
)

func TestTimestampsAreOrderedAsNumbers(t *testing.T) {
	t.Parallel()
	in := []string{"10.000001", "9.999999", "1700000000.000100", "1700000000.000099"}
	slices.SortFunc(in, chat.CompareTS)
	if want := []string{"9.999999", "10.000001", "1700000000.000099", "1700000000.000100"}; !slices.Equal(in, want) {
		t.Errorf("sorted to %v", in)
	}
}
