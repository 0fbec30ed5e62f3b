package sessions

import (
	"fmt"

	"the-loop/sessions/envstate"
)

// EnvFile is what the env file declares. That none is configured is another answer than that one declares nothing.
type EnvFile struct {
	Configured bool
	Values     envstate.Values // what panes are started with
	Refused    []string        // names that it declares and that no pane gets, in name order
	Malformed  []int           // numbers of its lines that cannot be used
	Warning    string          // a sentence when other users may read or write it
}

// Notes are what is to be said of the env file, a sentence each. None has any of its text.
func (e EnvFile) Notes() []string { return envNotes(e.Malformed, e.Refused, e.Warning) }

// Notes are what is to be said of the env file, a sentence each.
func (r RestartResult) Notes() []string { return envNotes(r.Malformed, r.Refused, r.Warning) }

func envNotes(malformed []int, refused []string, warning string) (notes []string) {
	for len(malformed) > 0 {
		n := countConsecutive(malformed)
		first, last := malformed[0], malformed[n-1]
		malformed = malformed[n:]
		if n == 1 {
			notes = append(notes, fmt.Sprintf("line %d of the env file is malformed and not used", first))
		} else {
			notes = append(notes, fmt.Sprintf("lines %d to %d of the env file are malformed and not used", first, last))
		}
	}
	for _, name := range refused {
		notes = append(notes, fmt.Sprintf("the env file declares %s, which no session gets", name))
	}
	if warning != "" {
		notes = append(notes, warning)
	}
	return notes
}

// countConsecutive is how many of the numbers follow one another from the first on.
func countConsecutive(numbers []int) int {
	n := 1
	for n < len(numbers) && numbers[n] == numbers[n-1]+1 {
		n++
	}
	return n
}
