package webapi

// RevokeToken makes every later use of a token fail with a Slack error such as token_revoked, invalid_auth or
// account_inactive; an empty error makes it valid again.
func (w *API) RevokeToken(token, slackError string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	w.tokenErrors[token] = slackError
}
