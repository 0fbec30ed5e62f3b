package registry

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"

	"the-loop/sessions"
	"the-loop/sessions/statefile"
)

// botLockTimeout is how long the bot's lock is tried: as long as a call of [Registry.BotRunning] may hold it.
const botLockTimeout = 100 * time.Millisecond

// BotInfo is what a bot says of itself when it takes the lock.
type BotInfo struct {
	Started time.Time
	App     string // id of the chat app; may be empty
}

// BotState is what a bot last said of itself. Whether it is alive is the lock's word, not the file's.
type BotState struct {
	PID         int       `json:"pid"`
	App         string    `json:"app,omitempty"`  // id of the chat app
	Team        string    `json:"team,omitempty"` // id of the workspace
	Started     time.Time `json:"started,omitzero"`
	Written     time.Time `json:"written,omitzero"` // when this was said
	Connected   bool      `json:"connected"`
	LastFrame   time.Time `json:"lastFrame,omitzero"` // of the socket, pings included
	Connections int       `json:"connections"`        // of the app, as the chat service counts them; more than one: another bot has it too
	ConfigError string    `json:"configError,omitempty"`
	Problem     string    `json:"problem,omitempty"` // what keeps it from doing its work, in words
	Bound       int       `json:"bound"`             // threads that are bound to a session
	Unposted    int       `json:"unposted"`          // messages that wait to be posted
	Unread      int       `json:"unread"`            // threads that are still to be read
}

// botFormat is how the bot's state is stored. The first one had no version.
var botFormat = statefile.Format[BotState]{Version: 1, Migrations: map[int]statefile.Migration{0: statefile.NoChange}}

// BotHeldError says that a bot runs on this root already. What the holder has not said is zero.
type BotHeldError struct {
	Root    string
	PID     int
	Started time.Time
	App     string
}

func (e *BotHeldError) Error() string {
	text := "a bot already runs on " + e.Root
	if e.PID != 0 {
		text += fmt.Sprintf(": process %d", e.PID)
	}
	if !e.Started.IsZero() {
		text += ", since " + e.Started.Format(time.RFC3339)
	}
	if e.App != "" {
		text += ", app " + e.App
	}
	return text
}

// botLockNote is what stands in the bot's lock file.
type botLockNote struct {
	PID     int       `json:"pid"`
	Started time.Time `json:"started,omitzero"`
	App     string    `json:"app,omitempty"`
}

// AcquireBot takes the lock that only one bot a root can have, and returns what releases it; it also goes with the
// process. A [*BotHeldError] names the bot that has it.
func (r *Registry) AcquireBot(ctx context.Context, info BotInfo) (release func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("take the bot's lock: %w", err)
	}
	wait, cancel := context.WithTimeout(ctx, botLockTimeout)
	defer cancel()
	who := botLockNote{PID: os.Getpid(), Started: info.Started, App: info.App}
	release, err = acquire(wait, r.botLock(), who, lockPollMin)
	switch {
	case err != nil:
		return nil, fmt.Errorf("take the bot's lock: %w", err)
	case release == nil:
		state := r.holderState()
		return nil, &BotHeldError{Root: r.root, PID: state.PID, Started: state.Started, App: state.App}
	}
	statefile.Sweep(filepath.Dir(r.botFile()), time.Now().Add(-statefile.StaleTempAge))
	return release, nil
}

// holderState is what is known of the bot that has the lock. What a bot before it left in the file does not count.
func (r *Registry) holderState() BotState {
	var h botLockNote
	if !readLockNote(r.botLock(), &h) {
		return BotState{}
	}
	if state, err := r.readBot(); err == nil && state.PID == h.PID && state.Started.Equal(h.Started) {
		return state
	}
	return BotState{PID: h.PID, Started: h.Started, App: h.App}
}

// WriteBot replaces bot.json, also one that cannot be read: what an earlier bot said does not count any more. Only the bot that has the lock may call it, with the PID and Started of the lock.
func (r *Registry) WriteBot(state BotState) error {
	if err := botFormat.Replace(r.botFile(), state); err != nil {
		return fmt.Errorf("write the bot's state: %w", err)
	}
	return nil
}

// BotRunning tells whether a bot has the lock of this root, with what it said last; of one that is gone, with its last
// words. An error means that the lock could not be asked, or that the state of a bot that is gone cannot be read.
func (r *Registry) BotRunning() (state BotState, alive bool, err error) {
	alive, err = r.isBotLocked()
	switch {
	case err != nil:
		return BotState{}, false, fmt.Errorf("ask for the bot: %w", err)
	case alive:
		return r.holderState(), true, nil
	}
	state, err = r.readBot()
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return state, false, err
}

// isBotLocked asks with a shared lock, so that two who ask at once do not take each other for a bot.
func (r *Registry) isBotLocked() (bool, error) {
	probe := flock.New(r.botLock(), flock.SetFlag(os.O_RDONLY))
	free, err := probe.TryRLock()
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return !free, probe.Unlock()
}

func (r *Registry) readBot() (BotState, error) {
	state, err := botFormat.Load(r.botFile())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return BotState{}, &sessions.UnreadableError{Path: r.botFile(), Err: withoutPath(err)}
	}
	return state, err
}
