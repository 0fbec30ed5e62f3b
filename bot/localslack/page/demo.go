package page

import (
	"context"
	"encoding/json"
	"time"
)

// DemoController is what stands behind a thread: a page shows it beside that, and has buttons that make things go wrong.
type DemoController interface {
	// State is how things are behind a thread now. thread may be empty, and of no session.
	State(ctx context.Context, channel, thread string) State
	// RunControl does what a control is for, and says what it did.
	RunControl(ctx context.Context, control, channel, thread string) (string, error)
}

// State is how things are behind a thread.
type State struct {
	Title    string      `json:"title,omitempty"`  // whose screen it is
	Note     string      `json:"note,omitempty"`   // why there is no screen
	Screen   [][]Run     `json:"screen,omitempty"` // lines of a terminal
	Facts    []FactGroup `json:"facts,omitempty"`
	Controls []Control   `json:"controls,omitempty"`
}

// Run is a piece of a terminal's line in one style. Colours are #rrggbb; empty: the terminal's own.
type Run struct {
	Text      string `json:"t"`
	FG        string `json:"f,omitempty"`
	BG        string `json:"b,omitempty"`
	Bold      bool   `json:"w,omitempty"`
	Dim       bool   `json:"d,omitempty"`
	Underline bool   `json:"u,omitempty"`
	Strike    bool   `json:"s,omitempty"`
}

// FactGroup are what is known of one thing. Wide ones have long lines.
type FactGroup struct {
	Title string `json:"title"`
	Wide  bool   `json:"wide,omitempty"`
	Lines []Fact `json:"lines"`
}

// Fact is one thing that is known. Mark is "", "good" or "bad".
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	Mark  string `json:"mark,omitempty"`
}

// Control is a button.
type Control struct {
	ID          string `json:"id"`
	Label       string `json:"label"`
	Description string `json:"what"` // what it does, in a sentence
}

// controlTimeout bounds what a control may take.
const controlTimeout = 30 * time.Second

// sendState sends how things are behind the thread that is open, when that is not what it was.
func (s *eventStream) sendState(ctx context.Context) {
	if s.p.opts.Demo == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	scene := s.p.opts.Demo.State(ctx, s.shownThread[0], s.shownThread[1])
	raw, err := json.Marshal(scene)
	if err != nil || string(raw) == s.lastState {
		return
	}
	s.lastState = string(raw)
	s.sendEvent("scene", "", json.RawMessage(raw))
}
