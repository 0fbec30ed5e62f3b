package bot

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/statefile"
)

// driftState is what is stored of the message that tells of stale sessions, and of the restart that was asked for. It
// holds names of variables; no value, and nothing that is made of one.
type driftState struct {
	Version    int                   `json:"version"`
	Message    *driftMessage         `json:"message,omitempty"` // nil: there is nothing to tell of
	Restart    *requestedRestart     `json:"run,omitempty"`     // nil: no restart is under way
	LastResult []sessions.RestartRow `json:"last,omitempty"`    // what came of the last restart
}

// driftMessage is one message in a channel. Its intent is on disk before it is posted.
type driftMessage struct {
	Channel     string    `json:"channel"`
	Nonce       string    `json:"nonce"`
	FirstTried  time.Time `json:"since"`           // when it was tried first, by our clock
	MaybePosted bool      `json:"tried,omitempty"` // a message with the nonce may be there
	TS          string    `json:"ts,omitempty"`
	ShownHash   string    `json:"shown,omitempty"`     // a sum of the text and the buttons
	Dismissed   bool      `json:"dismissed,omitempty"` // somebody deleted it
}

// requestedRestart is a restart of the stale sessions that somebody asked for.
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
