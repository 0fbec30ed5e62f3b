package bot

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/slack-go/slack"

	"the-loop/threads"
)

// APIError is an error that Slack named.
type APIError struct {
	Method string
	Code   string // e.g. not_in_channel
	Needed string // with missing_scope: the scopes that are missing

	is error // the sentinel of package threads that it stands for, or nil
}

func (e *APIError) Error() string {
	if e.Needed != "" {
		return fmt.Sprintf("%s: %s (needs %s)", e.Method, e.Code, e.Needed)
	}
	return e.Method + ": " + e.Code
}

func (e *APIError) Unwrap() error { return e.is }

// FatalError is a refusal that no retry mends: somebody has to do something about the app or its tokens.
type FatalError struct {
	Token  string // "bot token" or "app token"
	Code   string // Slack's name of the error
	Needed string // with missing_scope: the scopes that are missing
	Remedy string
}

func (e *FatalError) Error() string {
	what := e.Code
	if e.Needed != "" {
		what += " " + e.Needed
	}
	return fmt.Sprintf("Slack refuses the %s (%s): %s", e.Token, what, e.Remedy)
}

// The tokens as messages name them.
const (
	botTokenName = "bot token"
	appTokenName = "app token"
)

const (
	remedyToken = "copy the token again from the app's settings at api.slack.com/apps"
	remedyTeam  = "ask an administrator of the Slack workspace"
)

// fatalCodes are the errors that no retry mends, with what to do. Slack's documentation lists them under every method.
var fatalCodes = map[string]string{
	"invalid_auth":           remedyToken,
	"not_authed":             remedyToken,
	"account_inactive":       "the app was uninstalled or its bot deactivated; install it again and copy its new token",
	"token_revoked":          "the token was revoked; install the app again and copy its new token",
	"token_expired":          "switch token rotation off in the app's settings and install the app again",
	"not_allowed_token_type": "the two tokens may be swapped: the bot token begins with xoxb-, the app token with xapp-",
	"missing_scope":          "add the scope in the app's settings (`the-loop slack manifest` lists them all) and reinstall the app",
	"no_permission":          remedyTeam + " to allow the app",
	"team_disabled":          remedyTeam + ": it is disabled",
	"org_login_required":     remedyTeam + ": it is moving into an organisation",
	"access_denied":          remedyTeam + " to allow the app",
	"app_not_found":          "the app was deleted; create it again from `the-loop slack manifest`",
}

// fatal returns the FatalError that a Slack error code stands for, or nil.
func fatal(token, code, needed string) *FatalError {
	remedy, ok := fatalCodes[code]
	if !ok {
		return nil
	}
	if code == "missing_scope" && token == appTokenName {
		remedy = "make an app-level token with the scope connections:write"
	}
	return &FatalError{Token: token, Code: code, Needed: needed, Remedy: remedy}
}

// meanings are the error codes that package threads branches on. channel_not_found is also what Slack says of a private
// channel that the bot was removed from, so it never means that a thread is gone for good.
var meanings = map[string]error{
	"thread_not_found":      threads.ErrThreadGone,
	"message_not_found":     threads.ErrReplyGone,
	"channel_not_found":     threads.ErrUnavailable,
	"not_in_channel":        threads.ErrUnavailable,
	"is_archived":           threads.ErrUnavailable,
	"is_inactive":           threads.ErrUnavailable,
	"restricted_action":     threads.ErrUnavailable,
	"team_not_found":        threads.ErrUnavailable,
	"mcp_externally_shared": threads.ErrUnavailable,
}

// halfDone are the codes after which Slack's documentation says that a part may have been done all the same.
var halfDone = map[string]bool{"internal_error": true, "fatal_error": true, "service_unavailable": true}

// classify turns what a call returned into this package's errors. effect says that the call does something that must not
// be done twice: then an answer that never came is threads.ErrUnknown.
func classify(method, token string, effect bool, err error) error {
	var slackErr slack.SlackErrorResponse
	var limited *slack.RateLimitedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return fmt.Errorf("%s: %w", method, &threads.RateLimitedError{After: limited.RetryAfter})
	case errors.As(err, &slackErr):
		return classifyCode(method, token, effect, slackErr)
	case effect && mayBeDone(err):
		return fmt.Errorf("%s: %w: %w", method, threads.ErrUnknown, err)
	}
	return fmt.Errorf("%s: %w", method, err)
}

func classifyCode(method, token string, effect bool, e slack.SlackErrorResponse) error {
	if f := fatal(token, e.Err, e.Needed); f != nil {
		return fmt.Errorf("%s: %w", method, f)
	}
	switch {
	case e.Err == "ratelimited" || e.Err == "rate_limited":
		return fmt.Errorf("%s: %w", method, &threads.RateLimitedError{After: defaultRetryAfter})
	case effect && halfDone[e.Err]:
		return &APIError{Method: method, Code: e.Err, is: threads.ErrUnknown}
	}
	return &APIError{Method: method, Code: e.Err, Needed: e.Needed, is: meanings[e.Err]}
}

// mayBeDone reports whether a request that failed outside of Slack's own errors may have had its effect: it was sent
// and the answer is missing, is a server's failure, or is not JSON.
func mayBeDone(err error) bool {
	var lost *transportError
	var status slack.StatusCodeError
	switch {
	case errors.As(err, &lost):
		return lost.sent
	case errors.As(err, &status):
		return status.Code >= http.StatusInternalServerError
	}
	return true
}

// code is Slack's name of an error, or empty.
func code(err error) string {
	var api *APIError
	var f *FatalError
	switch {
	case errors.As(err, &api):
		return api.Code
	case errors.As(err, &f):
		return f.Code
	}
	return ""
}
