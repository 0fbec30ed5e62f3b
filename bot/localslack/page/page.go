// Package page shows the local workspace in a browser, to one person who writes as several.
package page

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

//go:embed web
var webFiles embed.FS

// Options are what a page is made of. Visitors, of whom one at least is needed, are the only required ones.
type Options struct {
	Addr      string         // listen address, a loopback one; default 127.0.0.1:0
	Personas  []Persona      // as whom one can write, the first one at first
	Channel   string         // the channel that is shown at first; default: the first one
	Commands  []Command      // that the composer suggests
	Shortcuts []Shortcut     // in the menu of a message
	Tips      []string       // what to try, in a sentence each
	Demo      DemoController // what is shown beside the thread; nil: nothing
}

// Persona is a member as whom one can write, with what one should know of them.
type Persona struct {
	User       string `json:"user"`  // member id
	Role       string `json:"role"`  // in a few words: on the list
	About      string `json:"about"` // in a sentence
	Authorized bool   `json:"in"`    // gets somewhere
}

// Command is a slash command that the app registered, with the words that may follow it.
type Command struct {
	Name        string `json:"name"` // with the slash
	Verb        string `json:"text"` // words: status
	Hint        string `json:"hint"` // what may follow them: NAME
	Description string `json:"what"` // what it does
}

// Shortcut is an entry that the app has in the menu of messages.
type Shortcut struct {
	ID   string `json:"id"` // the callback id
	Name string `json:"name"`
}

// Page shows the workspace in a browser, as people know it, and lets one write there as several people. It is served on
// loopback, to the browser that came by its address. Start owns the listener and all goroutines; Close ends them.
type Page struct {
	w    *localslack.Workspace
	opts Options
	auth *pageAuth // nil before Start

	ctx    context.Context
	cancel context.CancelFunc
	server *http.Server
	wg     sync.WaitGroup
}

// New makes a page of a workspace that has started. It does nothing until Start.
func New(w *localslack.Workspace, opts Options) *Page {
	store.SetDefault(&opts.Addr, "127.0.0.1:0")
	return &Page{w: w, opts: opts}
}

// Start listens and serves until ctx ends or Close is called.
func (p *Page) Start(ctx context.Context) error {
	if len(p.opts.Personas) == 0 {
		return errors.New("start the page: there is nobody to write as")
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "tcp", p.opts.Addr)
	if err != nil {
		return fmt.Errorf("listen for the page: %w", err)
	}
	addr, ok := ln.Addr().(*net.TCPAddr)
	if !ok || !addr.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("listen for the page: %s is not a loopback address", p.opts.Addr), ln.Close())
	}
	handler, err := p.handler()
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	p.auth = newPageAuth(addr)
	p.ctx, p.cancel = context.WithCancel(ctx)
	p.server = &http.Server{Handler: p.auth.middleware(handler), ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return p.ctx }}
	p.wg.Go(func() { _ = p.server.Serve(ln) }) // ends with ErrServerClosed
	p.wg.Go(func() { <-p.ctx.Done(); p.shutdown() })
	return nil
}

// shutdownTimeout bounds how long requests may take to end, once they are told to.
const shutdownTimeout = 5 * time.Second

// shutdown lets the requests under way end, which their context tells them to.
func (p *Page) shutdown() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(p.ctx), shutdownTimeout)
	defer cancel()
	if p.server.Shutdown(ctx) != nil {
		_ = p.server.Close()
	}
}

// Close ends the page and waits for every goroutine.
func (p *Page) Close() error {
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	p.wg.Wait()
	return nil
}

// URL is the address of the page, with the key that lets a browser in.
func (p *Page) URL() string { return p.auth.keyURL() }

// SingleUseURL is an address of the page that lets one browser in, once: what starts a browser shows its arguments to
// everybody on the machine.
func (p *Page) SingleUseURL() string { return p.auth.singleUseURL() }

func (p *Page) handler() (http.Handler, error) {
	web, err := fs.Sub(webFiles, "web")
	if err != nil {
		return nil, fmt.Errorf("open the page's files: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(web))
	mux.HandleFunc("GET /api/state", p.serveSnapshot)
	mux.HandleFunc("GET /api/history", p.serveHistory)
	mux.HandleFunc("GET /api/stream", p.serveStream)
	mux.HandleFunc("GET /files/{id}", p.servePageFile)
	mux.HandleFunc("POST /api/act/{act}", p.serveAction)
	mux.HandleFunc("POST /api/files", p.servePostFiles)
	return mux, nil
}

// persona is the member that a request speaks for: one of those that the page may write as.
func (p *Page) persona(user string) (*localslack.Person, error) {
	for _, v := range p.opts.Personas {
		if v.User == user {
			if person, ok := p.w.Person(user); ok {
				return person, nil
			}
		}
	}
	return nil, slackerr.Refusedf("%q is nobody to write as", user)
}
