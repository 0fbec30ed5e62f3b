package bot

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"the-loop/sessions"
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

func driftStatePath(root string) string { return filepath.Join(root, "rotation.json") }

// loadDriftState reads the state; none is the zero state.
func loadDriftState(root string) (driftState, error) {
	path := driftStatePath(root)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return driftState{Version: driftStateVersion}, nil
	}
	var s driftState
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil && s.Version != driftStateVersion {
		err = fmt.Errorf("it has version %d, and this program reads %d", s.Version, driftStateVersion)
	}
	if err != nil {
		return driftState{}, &sessions.UnreadableError{Path: path, Err: err}
	}
	return s, nil
}

// save writes the state atomically and durably.
func (s driftState) save(root string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(driftStatePath(root), append(data, '\n'), 0o600, renameio.WithTempDir(root))
}
