package sessions

import "time"

// Turn is what an agent's record shows of the turn that it is in or was in last. The record of an agent that was killed
// goes on saying that it works: the pane knows better, so the state of the pane goes before it.
type Turn struct {
	Working bool      `json:"working,omitzero"`
	Since   time.Time `json:"since,omitzero"` // when it began, by this machine's clock; zero: not known
	Until   time.Time `json:"until,omitzero"` // when it ended; zero: it runs, or that is not known
}

// Begin is a turn that began then.
func (t Turn) Begin(at time.Time) Turn { return Turn{Working: true, Since: at} }

// Continue is the turn after a sign, of then, that it runs.
func (t Turn) Continue(at time.Time) Turn {
	if t.Working {
		return t
	}
	return t.Begin(at)
}

// End is the turn when it ended then, unless it had before.
func (t Turn) End(at time.Time) Turn {
	if t.Working {
		t.Working, t.Until = false, at
	}
	return t
}
