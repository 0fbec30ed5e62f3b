package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"the-loop/bot/slack/scrub"
	"the-loop/threads/chat"
)

const (
	// maxResponse bounds what is read of one answer: a page of 200 messages of 40,000 characters fits.
	maxResponse = 32 << 20
	// defaultRetryAfter is how long to wait when Slack says 429 and not how long.
	defaultRetryAfter = 10 * time.Second
	// maxRetryAfter bounds how long an answer can make us wait.
	maxRetryAfter = time.Hour
)

// transport is the HTTP client of the Slack library and of our own calls. It removes secrets from requests, sends to one host
// only, reads bounded answers, gives every 429 a Retry-After, tells whether a failed request may have reached Slack, and keeps
// Slack's clock.
type transport struct {
	base  *url.URL
	http  *http.Client
	clock *chat.Clock

	scrubber   func() scrub.Scrubber                                     // removes secrets from every request
	onResponse func(req *http.Request, resp *http.Response, body []byte) // called with each answer; may be nil
}

func newTransport(apiURL string, hc *http.Client) (*transport, error) {
	base, err := url.Parse(apiURL)
	if err != nil {
		return nil, fmt.Errorf("read the API URL: %w", err)
	}
	if base.Host == "" || base.Scheme != "https" && (base.Scheme != "http" || !isLoopback(base.Hostname())) {
		return nil, fmt.Errorf("the API URL %q must be https, or http on a loopback address", apiURL)
	}
	if !strings.HasSuffix(base.Path, "/") {
		base.Path += "/"
	}
	if hc == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		// Without it a connection that the network forgot is used again and again, for a quarter of an hour (golang/go#36026).
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second}
		hc = &http.Client{Transport: t}
	}
	own := *hc
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &transport{base: base, http: &own, scrubber: func() scrub.Scrubber { return noScrubber{} }, clock: &chat.Clock{}}, nil
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// transportError is a request that got no usable answer.
type transportError struct {
	sent bool // Slack may have read the request
	err  error
}

func (e *transportError) Error() string { return e.err.Error() }
func (e *transportError) Unwrap() error { return e.err }

// Do sends a request that carries a token, and reads the whole answer.
func (w *transport) Do(req *http.Request) (*http.Response, error) {
	if req.URL.Scheme != w.base.Scheme || req.URL.Host != w.base.Host {
		return nil, &transportError{err: fmt.Errorf("refusing to send a token to %s", req.URL.Host)}
	}
	if err := scrub.Request(req, w.scrubber()); err != nil {
		return nil, &transportError{err: err}
	}
	resp, err := w.send(req)
	if err == nil {
		if date := responseDate(resp.Header); !date.IsZero() {
			w.clock.ObserveDate(date)
		}
	}
	return resp, err
}

// responseDate is the Date of an answer; zero when it has none.
func responseDate(h http.Header) time.Time {
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return now
}

func (w *transport) send(req *http.Request) (*http.Response, error) {
	var sent atomic.Bool
	trace := &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }}
	resp, err := w.http.Do(req.WithContext(httptrace.WithClientTrace(req.Context(), trace)))
	if err != nil {
		return nil, &transportError{sent: sent.Load(), err: err}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	err = errors.Join(err, resp.Body.Close())
	if err == nil && len(body) > maxResponse {
		err = fmt.Errorf("the answer is longer than %d bytes", maxResponse)
	}
	if err != nil {
		return nil, &transportError{sent: true, err: err}
	}
	if w.onResponse != nil {
		w.onResponse(req, resp, body)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	normalizeRetryAfter(resp)
	return resp, nil
}

// normalizeRetryAfter writes the Retry-After of a 429 in seconds, since the Slack library understands nothing else.
func normalizeRetryAfter(resp *http.Response) {
	if resp.StatusCode == http.StatusTooManyRequests {
		after := retryAfter(resp.Header.Get("Retry-After"), time.Now())
		resp.Header.Set("Retry-After", strconv.Itoa(int((after+time.Second-1)/time.Second)))
	}
}

// retryAfter reads a Retry-After: seconds, or a moment as HTTP writes one. At least a second and at most an hour.
func retryAfter(value string, now time.Time) time.Duration {
	after := defaultRetryAfter
	if seconds, err := strconv.Atoi(value); err == nil {
		after = time.Duration(min(max(seconds, 0), int(maxRetryAfter/time.Second))) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		after = at.Sub(now)
	}
	return min(max(after, time.Second), maxRetryAfter)
}

// postForm calls a method with form arguments and returns the raw answer. The token travels in a header.
func (w *transport) postForm(ctx context.Context, method, token string, args url.Values) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base.JoinPath(method).String(), strings.NewReader(args.Encode()))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Authorization", "Bearer "+token)
	return w.Do(req)
}

// postResponse posts JSON to a response URL, without a token, and only to Slack's own hosts and the API's.
func (w *transport) postResponse(ctx context.Context, to string, body []byte) error {
	u, err := url.Parse(to)
	if err != nil || !w.isTrusted(u) {
		return errors.New("refusing to answer to a response URL that is not Slack's")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to, bytes.NewReader(body))
	if err != nil {
		return errors.New("the response URL cannot be used")
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	if err := scrub.Request(req, w.scrubber()); err != nil {
		return err
	}
	resp, err := w.send(req)
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err // the URL is a secret of its own
	}
	if err != nil {
		return fmt.Errorf("answer to the response URL: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("answer to the response URL: %s", resp.Status)
	}
	return nil
}

// slackDomains are Slack's domains (the Slack library has the same list).
var slackDomains = []string{"slack.com", "slack-gov.com"}

// isTrusted reports whether an address is Slack's own, or the API's.
func (w *transport) isTrusted(u *url.URL) bool {
	if u.Scheme == w.base.Scheme && strings.EqualFold(u.Host, w.base.Host) {
		return true
	}
	host := strings.ToLower(u.Hostname())
	return u.Scheme == "https" && slices.ContainsFunc(slackDomains, func(domain string) bool {
		return host == domain || strings.HasSuffix(host, "."+domain)
	})
}
