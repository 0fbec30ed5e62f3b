package threads

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"the-loop/sessions"
	"the-loop/threads/actor"
	"the-loop/threads/attachments"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
	"the-loop/threads/relay"
)

// ScreenReader reads the screens of agents.
type ScreenReader interface {
	View(ctx context.Context, q sessions.ViewRequest) (sessions.View, error)
}

// services are what all threads of a manager share.
type services struct {
	Options
	*actor.Goroutines
	store       binding.Store
	outbox      *outbox.Outbox
	downloader  *attachments.Downloader
	connections *connections
}

// chatService is the chat service as [outbox.Chat] needs it.
type chatService struct {
	chat.Poster
	chat.History
}

func (sv *services) chat() outbox.Chat { return chatService{sv.Poster, sv.History} }

// now is the time by Slack's clock, or by ours as long as that is not known.
func (sv *services) now() time.Time {
	if now, known := sv.Clock.Now(); known {
		return now
	}
	return sv.Now()
}

// slackTime is the time by Slack's clock; zero: not known. Then a thread is searched from its beginning.
func (sv *services) slackTime() time.Time {
	now, _ := sv.Clock.Now()
	return now
}

// answerMode says which texts of agents are posted now.
func (sv *services) answerMode() relay.Answers {
	if a := sv.Settings().Answers; a != "" {
		return a
	}
	return relay.AnswersOff
}

func (sv *services) renderAnswer(ref sessions.Ref, said sessions.AgentMessage) relay.Rendering {
	if sv.RenderAnswer == nil {
		return relay.Rendering{Texts: []string{chat.Escape(said.Text)}}
	}
	return sv.RenderAnswer(ref, said)
}

func (sv *services) permissionText(ref sessions.Ref, a sessions.PermissionRequest) PermissionRendering {
	if sv.PermissionText == nil {
		return PermissionRendering{Text: "The agent asks: " + chat.Escape(a.Tool+" "+a.Command+a.File), Whole: true}
	}
	return sv.PermissionText(ref, a)
}

// dialogText is what an agent's screen asks, for the thread.
func (sv *services) dialogText(lines []string) string {
	if sv.DialogText == nil || len(lines) == 0 {
		return ""
	}
	return "\n" + sv.DialogText(lines)
}

// isSecret reports whether a text holds what must be posted nowhere.
func (sv *services) isSecret(text string) bool { return sv.IsSecret != nil && sv.IsSecret(text) }

func (sv *services) emitDropped(ctx context.Context, id string, ref sessions.Ref, r chat.Reply, reason string) {
	sv.Sink.Emit(ctx, sessions.Event{Name: EventDropped, Level: slog.LevelInfo, ID: id, Ref: ref, Fields: map[string]any{
		"reason": reason, "channel": r.Channel, "thread": r.Root, "ts": r.TS, "user": r.Actor.User}})
}

// otherConnectionsFor is how long after a connection began Slack may still send events to another one that it counted then: one that we
// lost and that Slack has not given up yet, or another bot's.
const otherConnectionsFor = 2 * time.Minute

// connections says whether events may go to another connection than ours.
type connections struct {
	mu    sync.Mutex // guards the field that follows
	until time.Time
}

// opened says that a connection began; alone, that it is the only one.
func (c *connections) opened(alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.until = time.Time{}
	if !alone {
		c.until = time.Now().Add(otherConnectionsFor)
	}
}

// mayMissEvents reports whether an event of an earlier reply may have gone to another connection.
func (c *connections) mayMissEvents() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Before(c.until)
}
