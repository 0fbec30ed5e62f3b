package webapi

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

// MaxBody is the most bytes of a request.
const MaxBody = 64 << 20

// call is one request of the Web API.
type call struct {
	w      *API
	method string
	args   map[string]string
	token  string
	kind   tokenKind
	header http.Header // of the response
}

func (c *call) arg(name string) string { return c.args[name] }

func (c *call) flag(name string) bool {
	v := strings.ToLower(c.args[name])
	return v == "true" || v == "1"
}

// limit reads the limit argument.
func (c *call) limit(def, most int) (int, error) {
	v := c.args["limit"]
	if v == "" || v == "0" {
		return def, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 {
		return 0, slackerr.New("invalid_limit")
	}
	return min(n, most), nil
}

// ServeAPI serves a call of a Web API method.
func (w *API) ServeAPI(rw http.ResponseWriter, r *http.Request) {
	c := &call{w: w, method: r.PathValue("method"), header: rw.Header()}
	m, known := w.Methods[c.method]
	err := c.readArgs(r, m.json)
	seq := w.LogRequest(c.method, c.args)
	fault := w.Script.TakeForCall(c.method, c.args)
	if fault.AppliesBefore() {
		w.FinishRequest(seq, fault.Status, false, fault.Code, fault.Name)
		if fault.ApplyBefore(w.Clock, rw, r) {
			return
		}
	}
	var out store.Object
	switch {
	case err != nil:
	case !known:
		err = &slackerr.Error{Code: "unknown_method", Extra: store.Object{"req_method": c.method}}
	default:
		out, err = w.dispatch(c, m)
	}
	if fault.DropsAnswer() {
		w.FinishRequest(seq, 0, err == nil, slackerr.CodeOf(err), fault.Name)
		fault.ApplyAfter(r, rw)
		return
	}
	status := writeReply(rw, out, err)
	w.FinishRequest(seq, status, err == nil, slackerr.CodeOf(err), fault.NameOrEmpty())
}

// dispatch checks token, scopes and rates in Slack's order and runs the method.
func (w *API) dispatch(c *call, m method) (store.Object, error) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if err := w.authenticate(c, m); err != nil {
		return nil, err
	}
	if err := w.limitRate(c.method, m); err != nil {
		return nil, err
	}
	return m.fn(c)
}

func writeReply(rw http.ResponseWriter, out store.Object, err error) (status int) {
	status = http.StatusOK
	if err == nil {
		if out == nil {
			out = store.Object{}
		}
		out["ok"] = true
		return WriteJSON(rw, status, out)
	}
	body := store.Object{"ok": false, "error": "internal_error"}
	var e *slackerr.Error
	if errors.As(err, &e) {
		body["error"] = e.Code
		for k, v := range e.Extra {
			body[k] = v
		}
		if e.RetryAfter > 0 {
			status = http.StatusTooManyRequests
			rw.Header().Set("Retry-After", strconv.Itoa(max(1, int((e.RetryAfter+time.Second-1)/time.Second))))
		}
	}
	return WriteJSON(rw, status, body)
}

// WriteJSON writes an answer and returns its status: 500 when the body cannot be written as JSON.
func WriteJSON(rw http.ResponseWriter, status int, body any) int {
	data, err := json.Marshal(body)
	if err != nil {
		status, data = http.StatusInternalServerError, []byte(`{"ok":false,"error":"internal_error"}`)
	}
	rw.Header().Set("Content-Type", "application/json; charset=utf-8")
	rw.WriteHeader(status)
	_, _ = rw.Write(data) // the client may be gone
	return status
}

// readArgs reads arguments from query, form or JSON into strings; a JSON value that is no string stays JSON text.
// Methods that Slack reads forms only for see nothing of a JSON body.
func (c *call) readArgs(r *http.Request, jsonOK bool) error {
	c.args = map[string]string{}
	c.token = strings.TrimSpace(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	c.addArgs(r.URL.Query())
	var err error
	switch kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) {
	case "application/json":
		err = c.readJSON(r.Body, jsonOK)
	case "multipart/form-data":
		if err = r.ParseMultipartForm(MaxBody); err == nil {
			c.addArgs(url.Values(r.MultipartForm.Value))
		}
	default:
		if err = r.ParseForm(); err == nil {
			c.addArgs(r.PostForm)
		}
	}
	if t, ok := c.args["token"]; ok {
		delete(c.args, "token")
		if c.token == "" {
			c.token = t
		}
	}
	if err != nil {
		return slackerr.New("invalid_form_data")
	}
	return nil
}

func (c *call) addArgs(v url.Values) {
	for k := range v {
		c.args[k] = v.Get(k)
	}
}

func (c *call) readJSON(body io.Reader, jsonOK bool) error {
	data, err := io.ReadAll(body)
	if err != nil || len(data) == 0 || !jsonOK {
		return err
	}
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(data, &raw); err != nil {
		return slackerr.New("invalid_json")
	}
	for k, v := range raw {
		var s string
		switch {
		case string(v) == "null":
		case json.Unmarshal(v, &s) == nil:
			c.args[k] = s
		default:
			c.args[k] = string(v)
		}
	}
	return nil
}
