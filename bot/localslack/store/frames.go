package store

import (
	"context"
	"time"
)

// Frame is one WebSocket message or control frame as it went over a socket.
type Frame struct {
	Seq  int
	Time time.Time
	Conn int    // which socket, counted from 1
	Dir  string // "out" to the app, "in" from it
	Kind string // text, ping, pong, open, close
	Data []byte
	Note string // what became of it: ack, late ack, dropped …
}

// Frames returns the last frames in both directions, oldest first (Options.FrameLog of them).
func (w *Base) Frames() []Frame { return w.FramesSince(0) }

// FramesSince returns the frames after a sequence number; with Changed it makes a live view.
func (w *Base) FramesSince(seq int) []Frame {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	return w.frames.since(seq)
}

// WatchFrames calls fn with each frame from now on, in order, until ctx ends or the workspace closes.
func (w *Base) WatchFrames(ctx context.Context, fn func(Frame)) {
	w.Mu.Lock()
	seq := w.frames.Last
	w.Mu.Unlock()
	for {
		changed := w.Changed()
		for _, f := range w.FramesSince(seq) {
			seq = f.Seq
			fn(f)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		case <-w.Ctx.Done():
			return
		}
	}
}

// RecordFrameLocked keeps a frame. The caller holds Mu.
func (w *Base) RecordFrameLocked(f Frame) {
	f.Time = w.Clock.Now()
	w.frames.add(func(seq int) Frame { f.Seq = seq; return f })
	w.Notify()
}

// RecordFrame keeps a frame.
func (w *Base) RecordFrame(f Frame) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.RecordFrameLocked(f)
}
