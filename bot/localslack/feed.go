package localslack

// Feed changes the messages and channels of a workspace, and sends the app the events of that.
type Feed struct {
	*Hub
}

func newFeed(h *Hub) *Feed { return &Feed{Hub: h} }
