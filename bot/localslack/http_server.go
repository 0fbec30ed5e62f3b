package localslack

import (
	"context"
	"net"
	"net/http"
	"time"

	"the-loop/bot/localslack/webapi"
)

type connKey struct{}

func (w *Workspace) newServer() *http.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("/api/{method}", w.ServeAPI)
	mux.HandleFunc("/link/", w.ServeWebSocket)
	mux.HandleFunc("POST /response/{id}", w.ServeResponseURL)
	mux.HandleFunc("POST /upload/{id}", w.ServeUpload)
	mux.HandleFunc("GET /files/{id}/{name}", w.ServeFile)
	return &http.Server{
		Handler:           w.trackRequests(mux),
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return w.Ctx },
		ConnContext:       func(ctx context.Context, c net.Conn) context.Context { return context.WithValue(ctx, connKey{}, c) },
	}
}

// trackRequests lets Close wait for handlers and puts the workspace's clock on every response.
func (w *Workspace) trackRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if !w.trackHandler() {
			http.Error(rw, "the workspace is closed", http.StatusServiceUnavailable)
			return
		}
		defer w.wg.Done()
		rw.Header().Set("Date", w.Clock.Now().UTC().Format(http.TimeFormat))
		r.Body = http.MaxBytesReader(rw, r.Body, webapi.MaxBody)
		next.ServeHTTP(rw, r)
	})
}

// trackHandler registers a handler that Close waits for. It says no once the workspace is closed.
func (w *Workspace) trackHandler() bool {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if w.closed {
		return false
	}
	w.wg.Add(1)
	return true
}
