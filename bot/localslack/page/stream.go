package page

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/slackid"
	"the-loop/bot/localslack/store"
)

const (
	statePollInterval = 300 * time.Millisecond // how often backstage is looked at
	keepAliveInterval = 15 * time.Second       // after how much silence the stream says that it is there
	sendTimeout       = 10 * time.Second       // within which a browser has to take what it is sent
	maxShownLength    = 4_000                  // characters of a frame or of an argument that are shown
	maxFrames         = 200                    // frames and calls that a page is given at first
)

// journalEpoch tells the places of one run of the program from those of another one.
var journalEpoch = slackid.Hex(4)

func formatPosition(seq int) string { return journalEpoch + "-" + strconv.Itoa(seq) }

// parsePosition reads a place; ok is false for one of another run.
func parsePosition(s string) (seq int, ok bool) {
	epoch, n, _ := strings.Cut(s, "-")
	seq, err := strconv.Atoi(n)
	return seq, err == nil && epoch == journalEpoch
}

// pageChange is what is new of one thing.
type pageChange struct {
	Kind      store.ChangeKind `json:"kind"`
	Message   *pageMessage     `json:"message,omitempty"`
	Ephemeral *pageEphemeral   `json:"ephemeral,omitempty"`
	Views     []pageView       `json:"views,omitempty"`
	Home      *pageView        `json:"home,omitempty"`
	Key       string           `json:"key,omitempty"` // channel/thread of a status
	Status    string           `json:"status,omitempty"`
	People    []pagePerson     `json:"people,omitempty"`
	Channels  []pageChannel    `json:"channels,omitempty"`
}

// eventStream is one browser that is told what is new. serveStream owns it.
type eventStream struct {
	p           *Page
	rw          http.ResponseWriter
	ctrl        *http.ResponseController
	me          *localslack.Person
	seq         int // in the journal
	needsReset  bool
	showTraffic bool // frames and calls are shown
	frame       int
	request     int
	shownThread [2]string // channel and thread that backstage is shown of
	lastState   string    // the last scene
	err         error     // of the last write: the browser is gone
}

// serveStream tells a browser what is new, from the place on that it has seen (server-sent events). What is missed
// while it is away comes with the next stream; when that is more than is kept, it is told to read everything anew.
func (p *Page) serveStream(rw http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	me, err := p.persona(q.Get("as"))
	if err != nil {
		writeFailure(rw, err)
		return
	}
	s := &eventStream{p: p, rw: rw, ctrl: http.NewResponseController(rw), me: me, showTraffic: q.Get("wire") != "", shownThread: [2]string{q.Get("channel"), q.Get("thread")}}
	from := r.Header.Get("Last-Event-ID")
	if from == "" {
		from = q.Get("since")
	}
	var known bool
	s.seq, known = parsePosition(from)
	s.needsReset = !known
	rw.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	s.write(": here\n\n") // so that the browser knows that it is heard
	s.run(r.Context())
}

func (s *eventStream) run(ctx context.Context) {
	look := time.NewTicker(statePollInterval)
	defer look.Stop()
	alive := time.NewTicker(keepAliveInterval)
	defer alive.Stop()
	s.sendState(ctx)
	for s.err == nil {
		changed := s.p.w.Changed()
		s.sendChanges()
		s.sendTraffic()
		select {
		case <-changed:
		case <-look.C:
			s.sendState(ctx)
		case <-alive.C:
			s.write(": here\n\n")
		case <-ctx.Done():
			return
		case <-s.p.w.Ctx.Done():
			return
		}
	}
}

func (s *eventStream) write(text string) {
	if s.err != nil {
		return
	}
	s.err = s.ctrl.SetWriteDeadline(time.Now().Add(sendTimeout))
	if s.err == nil {
		_, s.err = s.rw.Write([]byte(text))
	}
	if s.err == nil {
		s.err = s.ctrl.Flush()
	}
}

// sendEvent sends one event; id is the place in the journal, if it has one.
func (s *eventStream) sendEvent(name, id string, data any) {
	raw, err := json.Marshal(data)
	if err != nil {
		s.err = fmt.Errorf("write the event %s: %w", name, err)
		return
	}
	if id != "" {
		id = "id: " + id + "\n"
	}
	s.write("event: " + name + "\n" + id + "data: " + string(raw) + "\n\n")
}

// sendChanges sends what changed in the workspace.
func (s *eventStream) sendChanges() {
	changes, next, whole := s.collectChanges()
	if s.needsReset || !whole {
		s.needsReset, s.seq = false, next
		s.sendEvent("reset", formatPosition(next), store.Object{})
		return
	}
	s.seq = next
	if len(changes) > 0 {
		s.sendEvent("news", formatPosition(next), changes)
	}
}

func (s *eventStream) collectChanges() (news []pageChange, next int, whole bool) {
	w := s.p.w.Store
	w.Mu.Lock()
	defer w.Mu.Unlock()
	changes, next, whole := w.ChangesSince(s.seq)
	for _, c := range changes {
		if n, ok := changeForPage(w, c, s.me.ID); ok {
			news = append(news, n)
		}
	}
	return news, next, whole
}

// changeForPage is what somebody sees of a change, if anything. The caller holds Mu.
func changeForPage(w *store.Store, c store.Change, me string) (n pageChange, seen bool) {
	n.Kind = c.Kind
	if c.User != "" && c.User != me {
		return n, false
	}
	ch := w.ChannelsByID[c.Channel]
	if c.Channel != "" && (ch == nil || !ch.HasMember(me)) {
		return n, false
	}
	switch c.Kind {
	case store.MessageChanged:
		m := pageMessage{Message: store.Message{TS: c.TS}, Channel: c.Channel, Deleted: true}
		if now := ch.ByTS[c.TS]; now != nil {
			m = toPageMessage(now, ch)
		}
		n.Message = &m
	case store.EphemeralChanged:
		e := pageEphemeral{TS: c.TS, Deleted: true}
		if now := w.FindEphemeral(me, c.TS); now != nil {
			e = toPageEphemeral(*now)
		}
		n.Ephemeral = &e
	case store.ViewsChanged:
		n.Views = pageViews(w, me)
	case store.HomeChanged:
		n.Home = pageHome(w, me)
	case store.StatusChanged:
		n.Key = c.Channel + "/" + c.TS
		n.Status = w.Statuses[n.Key]
	case store.DirectoryChanged:
		n.People, n.Channels = directory(w, me)
	}
	return n, true
}

// pageFrame is a frame of the socket or a call of the Web API, for people who want to see them pass.
type pageFrame struct {
	Time   time.Time         `json:"time"`
	Seq    int               `json:"seq"`
	Kind   string            `json:"kind"` // call, or the frame's kind
	Dir    string            `json:"dir,omitempty"`
	Conn   int               `json:"conn,omitempty"`
	Data   string            `json:"data,omitempty"`
	Note   string            `json:"note,omitempty"`
	Method string            `json:"method,omitempty"`
	Args   map[string]string `json:"args,omitempty"`
	Status int               `json:"status,omitempty"`
	OK     bool              `json:"ok,omitempty"`
	Error  string            `json:"error,omitempty"`
	Fault  string            `json:"fault,omitempty"`
}

// sendTraffic sends the frames and the calls that passed since the last time. A call is shown once it was answered, and not
// before those that came before it.
func (s *eventStream) sendTraffic() {
	if !s.showTraffic {
		return
	}
	var all []pageFrame
	for _, f := range s.p.w.FramesSince(s.frame) {
		s.frame = f.Seq
		all = append(all, pageFrame{Time: f.Time, Seq: f.Seq, Kind: f.Kind, Dir: f.Dir, Conn: f.Conn, Data: shorten(string(f.Data)), Note: f.Note})
	}
	for _, c := range s.p.w.RequestsSince(s.request) {
		if c.Status == 0 && c.Fault == "" && s.p.w.Now().Sub(c.Time) < sendTimeout {
			break // it is under way
		}
		s.request = c.Seq
		all = append(all, callFrame(c))
	}
	slices.SortStableFunc(all, func(a, b pageFrame) int { return a.Time.Compare(b.Time) })
	if len(all) > 0 {
		s.sendEvent("wire", "", all[max(0, len(all)-maxFrames):])
	}
}

func callFrame(c store.Request) pageFrame {
	args := map[string]string{}
	for k, v := range c.Args {
		args[k] = shorten(v)
	}
	return pageFrame{Time: c.Time, Seq: c.Seq, Kind: "call", Method: c.Method, Args: args, Status: c.Status, OK: c.OK, Error: c.Error, Fault: c.Fault}
}

func shorten(text string) string {
	if runes := []rune(text); len(runes) > maxShownLength {
		return string(runes[:maxShownLength]) + "…"
	}
	return text
}
