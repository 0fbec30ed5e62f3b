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

// rotationState is what is stored of the message that tells of stale sessions, and of the restart that was asked for. It
// holds names of variables; no value, and nothing that is made of one.
type rotationState struct {
	Version int                `json:"version"`
	Message *rotationMessage   `json:"message,omitempty"` // nil: there is nothing to tell of
	Run     *rotationRun       `json:"run,omitempty"`     // nil: no restart is under way
	Last    []sessions.RollRow `json:"last,omitempty"`    // what came of the last restart
}

// rotationMessage is one message in a channel. Its intent is on disk before it is posted.
type rotationMessage struct {
	Channel string    `json:"channel"`
	Nonce   string    `json:"nonce"`
	Since   time.Time `json:"since"`           // when it was tried first, by our clock
	Tried   bool      `json:"tried,omitempty"` // a message with the nonce may be there
	TS      string    `json:"ts,omitempty"`
	Shown   string    `json:"shown,omitempty"`     // a sum of the text and the buttons
	Gone    bool      `json:"dismissed,omitempty"` // somebody deleted it
}

// rotationRun is a restart of the stale sessions that somebody asked for.
type rotationRun struct {
	By      string    `json:"by"` // member id
	Started time.Time `json:"started"`
}

const rotationVersion = 1

func rotationPath(root string) string { return filepath.Join(root, "rotation.json") }

// loadRotation reads the state; none is the zero state.
func loadRotation(root string) (rotationState, error) {
	path := rotationPath(root)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return rotationState{Version: rotationVersion}, nil
	}
	var s rotationState
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err == nil && s.Version != rotationVersion {
		err = fmt.Errorf("it has version %d, and this program reads %d", s.Version, rotationVersion)
	}
	if err != nil {
		return rotationState{}, &sessions.UnreadableError{Path: path, Err: err}
	}
	return s, nil
}

// save writes the state atomically and durably.
func (s rotationState) save(root string) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(rotationPath(root), append(data, '\n'), 0o600, renameio.WithTempDir(root))
}
