package localslack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"

	"the-loop/bot/localslack/events"
	"the-loop/bot/localslack/socket"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/webapi"
)

// Workspace is one Slack workspace with one app installed in it. Its methods are safe for concurrent use. Start owns
// the listener and all goroutines; Close ends them.
type Workspace struct {
	*webapi.API

	wg     sync.WaitGroup
	cancel context.CancelFunc
	server *http.Server
	closed bool // guarded by the store's Mu
}

// New makes a workspace. It does nothing until Start.
func New(opts store.Options) *Workspace {
	return &Workspace{API: webapi.New(events.New(socket.New(store.New(store.WithDefaults(opts)))))}
}

// Start listens and serves until ctx ends or Close is called.
func (w *Workspace) Start(ctx context.Context) error {
	ln, err := w.Opts.Listener, error(nil)
	if ln == nil {
		ln, err = (&net.ListenConfig{}).Listen(ctx, "tcp", w.Opts.Host)
	}
	if err != nil {
		return fmt.Errorf("listen for the workspace: %w", err)
	}
	if addr, ok := ln.Addr().(*net.TCPAddr); !ok || !addr.IP.IsLoopback() {
		return errors.Join(fmt.Errorf("listen for the workspace: %s is not a loopback address", w.Opts.Host), ln.Close())
	}
	w.Mu.Lock()
	if w.Started {
		w.Mu.Unlock()
		return errors.Join(errors.New("start the workspace: it was started before"), ln.Close())
	}
	w.Started = true
	w.Ctx, w.cancel = context.WithCancel(ctx)
	w.BaseURL = "http://" + ln.Addr().String()
	w.server = w.newServer()
	w.Mu.Unlock()
	w.wg.Go(func() { w.Sched.Run(w.Ctx.Done()) })
	w.wg.Go(func() { _ = w.server.Serve(ln) }) // ends with ErrServerClosed
	w.wg.Go(func() { <-w.Ctx.Done(); w.shutdown() })
	return nil
}

// Close ends every connection at once and waits for every goroutine.
func (w *Workspace) Close() error {
	w.Mu.Lock()
	started := w.Started
	w.Mu.Unlock()
	if !started {
		return nil
	}
	w.cancel()
	w.wg.Wait()
	return nil
}

func (w *Workspace) shutdown() {
	w.Mu.Lock()
	w.closed = true
	conns := append([]*socket.Conn(nil), w.Conns...)
	w.Notify()
	w.Mu.Unlock()
	for _, c := range conns {
		c.Terminate()
	}
	_ = w.server.Close()
}
