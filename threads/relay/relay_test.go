package relay

import (
	"testing"
	"time"
)

// A run that is announced as it starts has its first answer posted; one that went on unannounced has not.
func TestTheFirstAnswerOfAFreshRunIsPosted(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for age, want := range map[time.Duration]time.Time{
		10 * time.Second: now.Add(-10*time.Second - startSlack), time.Hour: now, -time.Second: now,
	} {
		if got := transcriptStart(now.Add(-age), now); !got.Equal(want) {
			t.Errorf("a run of %s is heard from %s before now on", age, now.Sub(got))
		}
	}
}
