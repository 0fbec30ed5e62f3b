package sessions

import (
	"context"
	"log/slog"
	"time"
)

// Store keeps records, ledgers and locks.
type Store interface {
	Records
	Ledgers
	Locker
}

// Records keeps one [Record] a session. Every write is atomic and durable.
type Records interface {
	// Load returns the record of ref, which may spell its own another way, see [Ref.Same]. [ErrNotRecorded] when there is none; a file that cannot be read is a
	// [*UnreadableError], which is not absence. A [Collision] when another work item has its place.
	Load(ctx context.Context, ref Ref) (Record, error)
	// List returns all records of both kinds, by ref, and beside them the files that could not be read.
	List(ctx context.Context) ([]Record, []*UnreadableError, error)
	// Save writes a record, under the spelling of its ref that is there already. It refuses, with an [*UnreadableError], to overwrite a file that it cannot read.
	Save(ctx context.Context, r Record) error
	// Remove deletes the record of ref; one that is not there is no error.
	Remove(ctx context.Context, ref Ref) error
}

// Locker hands out locks that hold across processes and die with their holder.
type Locker interface {
	// Lock waits for the lock named key (at most until ctx ends or LockWait passed) and returns what releases it.
	// A [*LockedError] names the holder's process and verb.
	Lock(ctx context.Context, key, verb string) (release func(), err error)
}

// LockWait is how long a verb waits for another one on the same session.
const LockWait = 10 * time.Second

// Sink takes the events of the event log.
type Sink interface {
	Emit(ctx context.Context, e Event)
}

// Event is one line of the event log. It never holds the text of a message or a value of the environment.
type Event struct {
	Name   string // e.g. "standing.started"
	Level  slog.Level
	Ref    Ref    // may be empty
	ID     string // Record.ID; may be empty
	Fields map[string]any
}
