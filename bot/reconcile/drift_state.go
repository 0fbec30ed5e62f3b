package reconcile

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/statefile"
)

// driftState is what is stored of the message on stale sessions, and of the requested restart. It holds names of variables, and nothing
// made from their values.
type driftState struct {
	Version    int                   `json:"version"`
	Message    *driftMessage         `json:"message,omitempty"` // nil: there is none
	Restart    *requestedRestart     `json:"run,omitempty"`     // nil: none runs
	LastResult []sessions.RestartRow `json:"last,omitempty"`    // of the last restart
}

// driftMessage is one message in a channel. Its intent is on disk before it is posted.
type driftMessage struct {
	Channel     string    `json:"channel"`
	Nonce       string    `json:"nonce"`
	TriedAt     time.Time `json:"since"`           // when it was tried last, by our clock
	MaybePosted bool      `json:"tried,omitempty"` // a message with the nonce may be there
	TS          string    `json:"ts,omitempty"`
	ShownHash   string    `json:"shown,omitempty"`     // see [outbox.Fingerprint]
	Dismissed   bool      `json:"dismissed,omitempty"` // somebody deleted it
}

// requestedRestart is a restart that a member asked for.
type requestedRestart struct {
	RequestedBy string    `json:"by"` // member id
	Started     time.Time `json:"started"`
}

const driftStateVersion = 1

// driftFormat is how the state is stored.
var driftFormat = statefile.Format[driftState]{Version: driftStateVersion}

func driftStatePath(root string) string { return filepath.Join(root, "rotation.json") }

// loadDriftState reads the state; none is the zero state.
func loadDriftState(root string) (driftState, error) {
	s, err := driftFormat.Load(driftStatePath(root))
	if errors.Is(err, fs.ErrNotExist) {
		return driftState{Version: driftStateVersion}, nil
	}
	return s, err
}

// save writes the state atomically and durably.
func (s driftState) save(root string) error { return driftFormat.Save(driftStatePath(root), s) }
