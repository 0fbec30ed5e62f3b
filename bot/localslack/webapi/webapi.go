// Package webapi is the Web API of the local workspace, as strict as Slack: its methods with their tokens, scopes, rates and
// errors, the URLs of files and uploads, and response URLs.
package webapi

import "the-loop/bot/localslack/events"

// API is the Web API, with the URLs for responses and files. The store's Mu guards its state.
type API struct {
	*events.Feed

	Methods     map[string]method
	rates       map[string]*bucket
	tokenErrors map[string]string // token → Slack error, for revoked ones
}

// New makes the Web API of a workspace.
func New(f *events.Feed) *API {
	return &API{Feed: f, Methods: methodTable(), rates: map[string]*bucket{}, tokenErrors: map[string]string{}}
}
