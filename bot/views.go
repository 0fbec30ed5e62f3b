package bot

import (
	"context"

	slackgo "github.com/slack-go/slack"
)

// viewRef is a modal or a Home tab that is open.
type viewRef struct {
	ID   string
	Kind string // modal or home
	Meta string // private_metadata
}

// The kinds of views, as payloads name them.
const (
	kindModal = "modal"
	kindHome  = "home"
)

// openView opens a modal for who acted; from a modal it goes on top of that.
func (b *Bot) openView(ctx context.Context, a Interaction, view slackgo.ModalViewRequest) (id string, err error) {
	if a.View.Kind == kindModal {
		return b.o.Client.PushView(ctx, a.TriggerID, view)
	}
	return b.o.Client.OpenView(ctx, a.TriggerID, view)
}
