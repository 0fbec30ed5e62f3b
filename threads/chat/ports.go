package chat

import (
	"context"
	"errors"
)

// StatusSetter shows below a thread what its agent does, where the workspace has that.
type StatusSetter interface {
	// SetStatus shows a text of at most 50 characters behind the app's name, until the app posts in the thread or two
	// minutes are over. An empty one takes it away. [ErrNoStatus] where there is no such thing. Other errors as for [History].
	SetStatus(ctx context.Context, channel, root, text string) error
}

// ErrNoStatus says that the workspace shows no statuses, or not those of our app.
var ErrNoStatus = errors.New("the workspace shows no statuses of this app")

// Channels lists channels. Slack gives one another id when it is shared, and from then on does not know the old one.
type Channels interface {
	// Joined are the ids of the channels that the bot is in.
	Joined(ctx context.Context) ([]string, error)
}

// ThreadID is where a thread is: its channel, and the ts of its root.
type ThreadID struct{ Channel, Root string }
