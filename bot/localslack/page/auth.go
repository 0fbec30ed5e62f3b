package page

import (
	"crypto/subtle"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"the-loop/bot/localslack/slackid"
	"the-loop/bot/localslack/webapi"
)

// pageAuth decides who may use the page: the browser that came by the address with the key. Other people of this machine
// can reach the port too, and so can every web page that this browser has open.
type pageAuth struct {
	key     string
	cookie  string // its name; cookies do not tell ports apart
	hosts   []string
	baseURL string

	mu      sync.Mutex // guards the field that follows
	tickets map[string]bool
}

func newPageAuth(addr *net.TCPAddr) *pageAuth {
	port := strconv.Itoa(addr.Port)
	return &pageAuth{key: slackid.Hex(16), cookie: "the-loop-page-" + port, baseURL: "http://" + addr.String(), tickets: map[string]bool{},
		hosts: []string{addr.String(), net.JoinHostPort("localhost", port)}}
}

func (d *pageAuth) keyURL() string { return d.baseURL + "/?key=" + d.key }

// singleUseURL is an address that is good for one visit.
func (d *pageAuth) singleUseURL() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	ticket := slackid.Hex(16)
	d.tickets[ticket] = true
	return d.baseURL + "/?once=" + ticket
}

// redeemsURL reports whether an address has the key, or a ticket that nobody has used.
func (d *pageAuth) redeemsURL(q url.Values) bool {
	if d.matchesKey(q.Get("key")) {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	ticket := q.Get("once")
	good := d.tickets[ticket]
	delete(d.tickets, ticket)
	return good
}

// sameSiteHeader is the header that the page's own script sends: another site cannot without being asked for permission first.
const sameSiteHeader = "X-Page"

const contentSecurityPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'none'; " +
	"base-uri 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// middleware lets in what comes from the page itself, and the first visit with the key.
func (d *pageAuth) middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		for name, value := range map[string]string{"Content-Security-Policy": contentSecurityPolicy, "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin", "Cache-Control": "no-store",
			"Cross-Origin-Resource-Policy": "same-origin", "X-Frame-Options": "DENY"} {
			rw.Header().Set(name, value)
		}
		r.Body = http.MaxBytesReader(rw, r.Body, webapi.MaxBody)
		switch {
		case !d.isSameSite(r):
			http.Error(rw, "This page is not for other sites.", http.StatusForbidden)
		case r.URL.Path == "/" && d.redeemsURL(r.URL.Query()):
			http.SetCookie(rw, &http.Cookie{Name: d.cookie, Value: d.key, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
			http.Redirect(rw, r, "/", http.StatusSeeOther)
		case !d.isAuthenticated(r):
			http.Error(rw, "Open the address that the terminal printed: it has the key to this page.", http.StatusForbidden)
		default:
			next.ServeHTTP(rw, r)
		}
	})
}

// isSameSite reports whether a request is meant for this address (a name that somebody else points here is not it) and does
// not come from another site.
func (d *pageAuth) isSameSite(r *http.Request) bool {
	if !slices.Contains(d.hosts, strings.ToLower(r.Host)) {
		return false
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" && !isNavigation(r) {
		return false
	}
	origin := r.Header.Get("Origin")
	if r.Method == http.MethodGet || r.Method == http.MethodHead {
		return origin == "" || sameOrigin(origin, r.Host)
	}
	return sameOrigin(origin, r.Host) && r.Header.Get(sameSiteHeader) != ""
}

// isNavigation reports whether somebody follows a link to the page.
func isNavigation(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate"
}

func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == "http" && strings.EqualFold(u.Host, host)
}

func (d *pageAuth) matchesKey(key string) bool {
	return subtle.ConstantTimeCompare([]byte(key), []byte(d.key)) == 1
}

func (d *pageAuth) isAuthenticated(r *http.Request) bool {
	c, err := r.Cookie(d.cookie)
	return err == nil && d.matchesKey(c.Value)
}
