package sessions

import (
	"fmt"
	"strings"

	"the-loop/sessions/envstate"
)

// EnvFile is what the configuration declares for the environment of agents: in a file, and by the names of variables that agents
// get from our own environment. That nothing is configured is another answer than that nothing is declared.
type EnvFile struct {
	Configured bool
	Values     envstate.Values // what panes are started with
	Refused    []string        // names that it declares and that no pane gets, in name order
	Malformed  []int           // numbers of its lines that cannot be used
	Warning    string          // a sentence when other users may read or write it
	Unset      []string        // names that agents should get from our own environment and that are not set in it
}

// Notes are what is to be said of the declared environment, a sentence each. None has any of the env file's text.
func (d Drift) Notes() []string {
	return append(envNotes(d.Malformed, d.Refused, d.Warning), unsetNotes(d.Unset)...)
}

func unsetNotes(unset []string) (notes []string) {
	for _, name := range unset {
		notes = append(notes, fmt.Sprintf("env.pass names %s, which is not set in the environment of the-loop", name))
	}
	return notes
}

// CheckComplete refuses, because of [ErrEnvFile], when a variable that agents should get is not set: an agent that was started
// without it could not log in.
func (e EnvFile) CheckComplete() error {
	if len(e.Unset) == 0 {
		return nil
	}
	return &Refusal{Cause: ErrEnvFile, What: strings.Join(unsetNotes(e.Unset), "; "),
		Remedy: "set it where the-loop is started (for Slack: before the-loop start), declare it in env.file, or take it out of env.pass"}
}

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
