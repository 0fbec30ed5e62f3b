package sessions

import "strings"

// Names of the events that this package emits. Those of a work item's session are as [EventName] has them.
const (
	EventCreated      = "standing.created"
	EventCreateFailed = "standing.create_failed"
	EventDeleted      = "standing.deleted"
	EventStarted      = "standing.started"
	EventResumed      = "standing.resumed"
	EventResumeFailed = "standing.resume_failed"
	EventSpawnFailed  = "standing.spawn_failed"
	EventStopped      = "standing.stopped"
	EventStopFailed   = "standing.stop_failed"
	EventSubmitted    = "standing.said"
	EventKeys         = "standing.keys"  // with keys, actor, and answer ("deny" or "mode") where they were one
	EventEnded        = "standing.ended" // an agent was found to have ended on its own

	EventSpawned          = "session.spawned"
	EventRespawned        = "session.respawned" // with resumed: whether in the conversation before
	EventClosed           = "session.closed"
	EventDelivered        = "session.delivered"
	EventDeliveryRepeated = "session.delivery_repeated" // a delivery that was processed before; nothing was typed
	EventDeliveryInDoubt  = "session.delivery_in_doubt"
)

// EventName is what an event is called that the log has for both kinds of session, for a session of that ref:
// "standing.stopped" is "session.stopped" for a work item.
func EventName(ref Ref, name string) string {
	rest, both := strings.CutPrefix(name, "standing.")
	switch {
	case ref.Kind() != KindWorkItem || !both:
		return name
	case name == EventDeleted:
		return EventClosed
	case name == EventCreated:
		return "session.registered"
	case name == EventCreateFailed:
		return "session.register_failed"
	}
	return "session." + rest
}
