package core

import (
	"fmt"

	"the-loop/sessions"
)

// notRunningError is the refusal of every verb that needs a live session.
func notRunningError(ref sessions.Ref) error {
	return &sessions.Refusal{Cause: sessions.ErrNotRunning, What: fmt.Sprintf("%s is not running", ref), Remedy: ref.StartCommand()}
}

// replacedError is the refusal of what was meant for a session that had the ref before.
func replacedError(ref sessions.Ref) error {
	return &sessions.Refusal{Cause: sessions.ErrReplaced, What: fmt.Sprintf("the %s that this was meant for was deleted, and another one has its name", ref),
		Remedy: "use what belongs to the new one"}
}

// notRecordedError is the refusal of a name that nothing knows.
func notRecordedError(ref sessions.Ref) error {
	remedy := "the-loop standing list shows those there are"
	if ref.Kind() == sessions.KindWorkItem {
		remedy = "the-loop sessions register " + string(ref) + " makes one"
	}
	return &sessions.Refusal{Cause: sessions.ErrNotRecorded, What: fmt.Sprintf("there is no session %s", ref), Remedy: remedy}
}
