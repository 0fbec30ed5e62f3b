package sessions

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// AgentMessage is one text of an agent's.
type AgentMessage struct {
	Text   string
	Final  bool      // it ends a turn; else the agent said it between two steps
	Failed bool      // it is an error that ended the turn
	At     time.Time // by this machine's clock; zero: not known
	Key    string    // unique within the session, and the same whenever it is read
}

// TranscriptBatch is what an agent said, oldest first.
type TranscriptBatch struct {
	Messages   []AgentMessage
	Next       Offset   // to go on from
	WatchFiles []string // files: as long as none of them changes, there is nothing new
	Turn       Turn     // whether a turn runs, as of Next
}

// TranscriptRequest asks what the agent of a session said.
type TranscriptRequest struct {
	Ref    Ref
	ID     string    // the session that is meant; empty: whichever has the ref now
	Offset Offset    // [TranscriptBatch.Next] of the last time; empty: from Since on
	Since  time.Time // counts without an offset
}

// ReadTranscript reads what the agent of a session said, also in a run that has ended. [errors.ErrUnsupported] when its harness
// does not keep a record that can be read.
func (c *Core) ReadTranscript(ctx context.Context, q TranscriptRequest) (TranscriptBatch, error) {
	rec, err := c.requireRecord(ctx, q.Ref)
	switch {
	case err != nil:
		return TranscriptBatch{}, err
	case q.ID != "" && rec.ID != q.ID:
		return TranscriptBatch{}, &Refusal{Cause: ErrReplaced, What: fmt.Sprintf("the %s that is meant was deleted, and another one has its name", q.Ref)}
	}
	h, err := c.o.Harnesses(rec.Definition.Harness)
	if err != nil {
		return TranscriptBatch{}, &Refusal{Cause: ErrRefused, What: err.Error()}
	}
	read := h.Capabilities().ReadTranscript
	if read == nil {
		return TranscriptBatch{}, fmt.Errorf("the answers of %s: %w", h.Name(), errors.ErrUnsupported)
	}
	conv := rec.AgentConversation()
	conv.IsIdle = func(ctx context.Context) (bool, error) { return c.isIdle(ctx, rec) }
	if q.Offset == "" {
		conv.Started = q.Since
	}
	batch, err := read(ctx, conv, q.Offset)
	if err != nil {
		return TranscriptBatch{}, fmt.Errorf("read what %s said: %w", q.Ref, err)
	}
	return batch, nil
}

// isIdle reports whether the screen of a session waits for text, or its agent has ended.
func (c *Core) isIdle(ctx context.Context, rec Record) (bool, error) {
	view, err := c.View(ctx, ViewRequest{Ref: rec.Ref, ID: rec.ID})
	if errors.Is(err, ErrNotRunning) {
		return true, nil
	}
	return view.State == ViewReady, err
}
