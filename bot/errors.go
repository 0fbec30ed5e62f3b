package bot

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/slack-go/slack"

	"the-loop/threads/chat"
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

func (e *FatalError) Unwrap() error { return chat.ErrDisabled }

// The tokens as messages name them.
const (
	botTokenName = "bot token"
	appTokenName = "app token"
)

const (
	remedyToken = "copy the token again from the app's settings at api.slack.com/apps"
	remedyTeam  = "ask an administrator of the Slack workspace"
)

// meaning is what one of Slack's error codes stands for. Its zero value: the same call may do better soon.
type meaning struct {
	is     error  // of package threads, which [threads.FailureOf] classifies
	unsure bool   // Slack's documentation says that a part may have been done all the same
	wait   bool   // Slack takes no more for a while
	remedy string // with ErrDisabled: what somebody has to do; the bot cannot work without it
}

// meanings are the error codes of every method that is called here. A code that is not among them is taken for a refusal of
// this one message: what waits behind it goes on. channel_not_found is also what Slack says of a private channel that the bot
// was removed from, so it never means that a thread is gone for good.
var meanings = map[string]meaning{
	"internal_error":      {unsure: true},
	"fatal_error":         {unsure: true},
	"service_unavailable": {unsure: true},
	"request_timeout":     {unsure: true},
	codeNoAnswer:          {unsure: true},
	"team_added_to_org":   {},

	"ratelimited":            {wait: true},
	"rate_limited":           {wait: true},
	"message_limit_exceeded": {wait: true},

	"thread_not_found":  {is: chat.ErrThreadGone},
	"invalid_thread_ts": {is: chat.ErrThreadGone},
	"message_not_found": {is: chat.ErrReplyGone},

	"invalid_blocks":        {is: chat.ErrRefused},
	"invalid_blocks_format": {is: chat.ErrRefused},
	"msg_too_long":          {is: chat.ErrRefused},
	"msg_blocks_too_long":   {is: chat.ErrRefused},
	"metadata_too_large":    {is: chat.ErrRefused},
	"no_text":               {is: chat.ErrRefused},
	"invalid_name":          {is: chat.ErrRefused},
	"cant_update_message":   {is: chat.ErrRefused},
	"edit_window_closed":    {is: chat.ErrRefused},
	"too_many_emoji":        {is: errCrowded},
	"too_many_reactions":    {is: errCrowded},

	"channel_not_found":                        {is: chat.ErrUnavailable},
	"not_in_channel":                           {is: chat.ErrUnavailable},
	"is_archived":                              {is: chat.ErrUnavailable},
	"is_inactive":                              {is: chat.ErrUnavailable},
	"restricted_action":                        {is: chat.ErrUnavailable},
	"restricted_action_read_only_channel":      {is: chat.ErrUnavailable},
	"restricted_action_thread_only_channel":    {is: chat.ErrUnavailable},
	"restricted_action_non_threadable_channel": {is: chat.ErrUnavailable},
	"external_channel_migrating":               {is: chat.ErrUnavailable},
	"messages_tab_disabled":                    {is: chat.ErrUnavailable},
	"team_not_found":                           {is: chat.ErrUnavailable},
	"mcp_externally_shared":                    {is: chat.ErrUnavailable},

	"ekm_access_denied":         {is: chat.ErrDisabled},
	"enterprise_is_restricted":  {is: chat.ErrDisabled},
	"team_access_not_granted":   {is: chat.ErrDisabled},
	"two_factor_setup_required": {is: chat.ErrDisabled},
	"accesslimited":             {is: chat.ErrDisabled},
	"method_deprecated":         {is: chat.ErrDisabled},
	"deprecated_endpoint":       {is: chat.ErrDisabled},

	"invalid_auth":           {is: chat.ErrDisabled, remedy: remedyToken},
	"not_authed":             {is: chat.ErrDisabled, remedy: remedyToken},
	"account_inactive":       {is: chat.ErrDisabled, remedy: "the app was uninstalled or its bot deactivated; install it again and copy its new token"},
	"token_revoked":          {is: chat.ErrDisabled, remedy: "the token was revoked; install the app again and copy its new token"},
	"token_expired":          {is: chat.ErrDisabled, remedy: "switch token rotation off in the app's settings and install the app again"},
	"not_allowed_token_type": {is: chat.ErrDisabled, remedy: "the two tokens may be swapped: the bot token begins with xoxb-, the app token with xapp-"},
	"missing_scope":          {is: chat.ErrDisabled, remedy: "add the scope in the app's settings (`the-loop slack manifest` lists them all) and reinstall the app"},
	"no_permission":          {is: chat.ErrDisabled, remedy: remedyTeam + " to allow the app"},
	"team_disabled":          {is: chat.ErrDisabled, remedy: remedyTeam + ": it is disabled"},
	"org_login_required":     {is: chat.ErrDisabled, remedy: remedyTeam + ": it is moving into an organisation"},
	"access_denied":          {is: chat.ErrDisabled, remedy: remedyTeam + " to allow the app"},
	"app_not_found":          {is: chat.ErrDisabled, remedy: "the app was deleted; create it again from `the-loop slack manifest`"},
}

// codeNoAnswer is our own name for an answer that is no success and names no error.
const codeNoAnswer = "no_answer"

// errCrowded is a refusal of one reaction for want of room.
var errCrowded = fmt.Errorf("%w: %w", chat.ErrRefused, chat.ErrTooManyReactions)

// meaningOf looks a code up.
func meaningOf(code string) meaning {
	if m, known := meanings[code]; known {
		return m
	}
	return meaning{is: chat.ErrRefused}
}

// fatal returns the FatalError that a Slack error code stands for, or nil.
func fatal(token, code, needed string) *FatalError {
	remedy := meanings[code].remedy
	if remedy == "" {
		return nil
	}
	if code == "missing_scope" && token == appTokenName {
		remedy = "make an app-level token with the scope connections:write"
	}
	return &FatalError{Token: token, Code: code, Needed: needed, Remedy: remedy}
}

// classify turns what a call returned into this package's errors. effect says that the call does something that must not
// be done twice: then an answer that never came is threads.ErrOutcomeUnknown.
func classify(method, token string, effect bool, err error) error {
	var slackErr slack.SlackErrorResponse
	var limited *slack.RateLimitedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return fmt.Errorf("%s: %w", method, &chat.RateLimitedError{After: limited.RetryAfter})
	case errors.As(err, &slackErr):
		return classifyCode(method, token, effect, slackErr)
	case effect && mayBeDone(err):
		return fmt.Errorf("%s: %w: %w", method, chat.ErrOutcomeUnknown, err)
	}
	return fmt.Errorf("%s: %w", method, err)
}

func classifyCode(method, token string, effect bool, e slack.SlackErrorResponse) error {
	if f := fatal(token, e.Err, e.Needed); f != nil {
		return fmt.Errorf("%s: %w", method, f)
	}
	m := meaningOf(e.Err)
	switch {
	case m.wait:
		return fmt.Errorf("%s: %w", method, &chat.RateLimitedError{After: defaultRetryAfter})
	case effect && m.unsure:
		m.is = chat.ErrOutcomeUnknown
	}
	return &APIError{Method: method, Code: e.Err, Needed: e.Needed, is: m.is}
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
