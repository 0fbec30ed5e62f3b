package localslack

import "the-loop/bot/localslack/events"

// API is the Web API, with the URLs for responses and files. The store's mu guards its state.
type API struct {
	*events.Feed

	methods     map[string]method
	rates       map[string]*bucket
	tokenErrors map[string]string // token → Slack error, for revoked ones
}

func newAPI(f *events.Feed) *API {
	return &API{Feed: f, methods: methodTable(), rates: map[string]*bucket{}, tokenErrors: map[string]string{}}
}
