package workspace

import (
	"context"
	"encoding/json"
	"time"
)

// Backstage is what stands behind a thread: a page shows it beside that, and has buttons that make things go wrong.
type Backstage interface {
	// Scene is how things are behind a thread now. thread may be empty, and of no session.
	Scene(ctx context.Context, channel, thread string) Scene
	// Play does what a control is for, and says what it did.
	Play(ctx context.Context, control, channel, thread string) (string, error)
}

// Scene is how things are behind a thread.
type Scene struct {
	Title    string    `json:"title,omitempty"`  // whose screen it is
	Note     string    `json:"note,omitempty"`   // why there is no screen
	Screen   [][]Run   `json:"screen,omitempty"` // lines of a terminal
	Facts    []Facts   `json:"facts,omitempty"`
	Controls []Control `json:"controls,omitempty"`
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

// Facts are what is known of one thing. Wide ones have long lines.
type Facts struct {
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
	ID    string `json:"id"`
	Label string `json:"label"`
	What  string `json:"what"` // what it does, in a sentence
}

// playTime bounds what a control may take.
const playTime = 30 * time.Second

// scene sends how things are behind the thread that is open, when that is not what it was.
func (s *stream) scene(ctx context.Context) {
	if s.p.opts.Backstage == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	scene := s.p.opts.Backstage.Scene(ctx, s.open[0], s.open[1])
	raw, err := json.Marshal(scene)
	if err != nil || string(raw) == s.shown {
		return
	}
	s.shown = string(raw)
	s.event("scene", "", json.RawMessage(raw))
}
