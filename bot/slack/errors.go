package slack

import (
	"errors"
	"fmt"
	"net/http"

	slackgo "github.com/slack-go/slack"

	"the-loop/threads/chat"
)

// APIError is an error that Slack named.
type APIError struct {
	Method string
	Code   string // e.g. not_in_channel
	Needed string // with missing_scope: the scopes that are missing

	sentinel error // the error of package chat that it stands for, or nil
}

func (e *APIError) Error() string {
	if e.Needed != "" {
		return fmt.Sprintf("%s: %s (needs %s)", e.Method, e.Code, e.Needed)
	}
	return e.Method + ": " + e.Code
}

func (e *APIError) Unwrap() error { return e.sentinel }

// FatalError is a refusal that no retry changes: somebody has to change the app or its tokens.
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

// codeClass is what one of Slack's error codes stands for. Its zero value: the same call may do better soon.
type codeClass struct {
	sentinel    error  // of package chat, which [chat.FailureOf] classifies
	ambiguous   bool   // Slack's documentation says that a part may have been done all the same
	rateLimited bool   // Slack takes no more for a while
	remedy      string // with ErrDisabled: what somebody has to do before the bot can work
}

// sentinelByCode are the error codes of every method that is called here. Any other code counts as a refusal of this one message,
// so that others go on. Slack says channel_not_found also of a private channel that the bot was removed from, so it never means
// that a thread is gone for good.
var sentinelByCode = map[string]codeClass{
	"internal_error":      {ambiguous: true},
	"fatal_error":         {ambiguous: true},
	"service_unavailable": {ambiguous: true},
	"request_timeout":     {ambiguous: true},
	codeNoAnswer:          {ambiguous: true},
	"team_added_to_org":   {},

	"ratelimited":            {rateLimited: true},
	"rate_limited":           {rateLimited: true},
	"message_limit_exceeded": {rateLimited: true},

	"thread_not_found":  {sentinel: chat.ErrThreadGone},
	"invalid_thread_ts": {sentinel: chat.ErrThreadGone},
	"message_not_found": {sentinel: chat.ErrReplyGone},

	"invalid_blocks":        {sentinel: chat.ErrRefused},
	"invalid_blocks_format": {sentinel: chat.ErrRefused},
	"msg_too_long":          {sentinel: chat.ErrRefused},
	"msg_blocks_too_long":   {sentinel: chat.ErrRefused},
	"metadata_too_large":    {sentinel: chat.ErrRefused},
	"no_text":               {sentinel: chat.ErrRefused},
	"invalid_name":          {sentinel: chat.ErrRefused},
	"cant_update_message":   {sentinel: chat.ErrRefused},
	"edit_window_closed":    {sentinel: chat.ErrRefused},
	"too_many_emoji":        {sentinel: errTooManyReactions},
	"too_many_reactions":    {sentinel: errTooManyReactions},

	"channel_not_found":                        {sentinel: chat.ErrUnavailable},
	"not_in_channel":                           {sentinel: chat.ErrUnavailable},
	"is_archived":                              {sentinel: chat.ErrUnavailable},
	"is_inactive":                              {sentinel: chat.ErrUnavailable},
	"restricted_action":                        {sentinel: chat.ErrUnavailable},
	"restricted_action_read_only_channel":      {sentinel: chat.ErrUnavailable},
	"restricted_action_thread_only_channel":    {sentinel: chat.ErrUnavailable},
	"restricted_action_non_threadable_channel": {sentinel: chat.ErrUnavailable},
	"external_channel_migrating":               {sentinel: chat.ErrUnavailable},
	"messages_tab_disabled":                    {sentinel: chat.ErrUnavailable},
	"team_not_found":                           {sentinel: chat.ErrUnavailable},
	"mcp_externally_shared":                    {sentinel: chat.ErrUnavailable},

	"ekm_access_denied":         {sentinel: chat.ErrDisabled},
	"enterprise_is_restricted":  {sentinel: chat.ErrDisabled},
	"team_access_not_granted":   {sentinel: chat.ErrDisabled},
	"two_factor_setup_required": {sentinel: chat.ErrDisabled},
	"accesslimited":             {sentinel: chat.ErrDisabled},
	"method_deprecated":         {sentinel: chat.ErrDisabled},
	"deprecated_endpoint":       {sentinel: chat.ErrDisabled},

	"invalid_auth":           {sentinel: chat.ErrDisabled, remedy: remedyToken},
	"not_authed":             {sentinel: chat.ErrDisabled, remedy: remedyToken},
	"account_inactive":       {sentinel: chat.ErrDisabled, remedy: "the app was uninstalled or its bot deactivated; install it again and copy its new token"},
	"token_revoked":          {sentinel: chat.ErrDisabled, remedy: "the token was revoked; install the app again and copy its new token"},
	"token_expired":          {sentinel: chat.ErrDisabled, remedy: "switch token rotation off in the app's settings and install the app again"},
	"not_allowed_token_type": {sentinel: chat.ErrDisabled, remedy: "the two tokens may be swapped: the bot token begins with xoxb-, the app token with xapp-"},
	"missing_scope":          {sentinel: chat.ErrDisabled, remedy: "add the scope in the app's settings (`the-loop slack manifest` lists them all) and reinstall the app"},
	"no_permission":          {sentinel: chat.ErrDisabled, remedy: remedyTeam + " to allow the app"},
	"team_disabled":          {sentinel: chat.ErrDisabled, remedy: remedyTeam + ": it is disabled"},
	"org_login_required":     {sentinel: chat.ErrDisabled, remedy: remedyTeam + ": it is moving into an organisation"},
	"access_denied":          {sentinel: chat.ErrDisabled, remedy: remedyTeam + " to allow the app"},
	"app_not_found":          {sentinel: chat.ErrDisabled, remedy: "the app was deleted; create it again from `the-loop slack manifest`"},
}

// codeNoAnswer is our own name for an answer that is no success and names no error.
const codeNoAnswer = "no_answer"

// errTooManyReactions is a refusal of one reaction for want of room.
var errTooManyReactions = fmt.Errorf("%w: %w", chat.ErrRefused, chat.ErrTooManyReactions)

// classOfCode is the class of a code.
func classOfCode(code string) codeClass {
	if m, known := sentinelByCode[code]; known {
		return m
	}
	return codeClass{sentinel: chat.ErrRefused}
}

// newFatalError returns the FatalError that a Slack error code stands for, or nil.
func newFatalError(token, code, needed string) *FatalError {
	remedy := sentinelByCode[code].remedy
	if remedy == "" {
		return nil
	}
	if code == "missing_scope" && token == appTokenName {
		remedy = "make an app-level token with the scope connections:write"
	}
	return &FatalError{Token: token, Code: code, Needed: needed, Remedy: remedy}
}

// classify turns the error of a call into those of this package and of package chat. effect says that the call does something
// that must not be done twice: then an answer that never came is [chat.ErrOutcomeUnknown].
func classify(method, token string, effect bool, err error) error {
	var slackErr slackgo.SlackErrorResponse
	var limited *slackgo.RateLimitedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &limited):
		return fmt.Errorf("%s: %w", method, &chat.RateLimitedError{After: limited.RetryAfter})
	case errors.As(err, &slackErr):
		return classifyCode(method, token, effect, slackErr)
	case effect && mayHaveSucceeded(err):
		return fmt.Errorf("%s: %w: %w", method, chat.ErrOutcomeUnknown, err)
	}
	return fmt.Errorf("%s: %w", method, err)
}

func classifyCode(method, token string, effect bool, e slackgo.SlackErrorResponse) error {
	if f := newFatalError(token, e.Err, e.Needed); f != nil {
		return fmt.Errorf("%s: %w", method, f)
	}
	m := classOfCode(e.Err)
	switch {
	case m.rateLimited:
		return fmt.Errorf("%s: %w", method, &chat.RateLimitedError{After: defaultRetryAfter})
	case effect && m.ambiguous:
		m.sentinel = chat.ErrOutcomeUnknown
	}
	return &APIError{Method: method, Code: e.Err, Needed: e.Needed, sentinel: m.sentinel}
}

// mayHaveSucceeded reports whether a request without an answer of Slack's may have had its effect: it was sent, and the answer is
// missing, is a server's failure, or is not JSON.
func mayHaveSucceeded(err error) bool {
	var lost *transportError
	var status slackgo.StatusCodeError
	switch {
	case errors.As(err, &lost):
		return lost.sent
	case errors.As(err, &status):
		return status.Code >= http.StatusInternalServerError
	}
	return true
}

// ErrorCode is the code of an error that Slack named; empty: it named none.
func ErrorCode(err error) string {
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
