package sessions

// StartEventName returns the name of the event of a started agent, and adds to fields what belongs to it.
func StartEventName(rec Record, row Row, fields map[string]any) string {
	resumed := row.Outcome == OutcomeResumed
	switch {
	case rec.Ref.Kind() == KindWorkItem && !rec.HasRun():
		return EventSpawned
	case rec.Ref.Kind() == KindWorkItem:
		fields["resumed"] = resumed
		return EventRespawned
	case resumed:
		return EventResumed
	}
	return EventStarted
}

// EventRestarted is written when a session was restarted in its pane onto what the env file declares.
const EventRestarted = "session.restarted"
