package localslack

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
)

const (
	maxResponseURLUses = 5
	responseURLTTL     = 30 * time.Minute
)

// responseURL answers a command or a click later: five times within half an hour.
type responseURL struct {
	channel, user, ts  string
	ephemeral, replace bool
	uses               int
	expires            time.Time
}

// newResponseURL registers a response URL. The caller holds mu.
func (w *Store) newResponseURL(r *responseURL) string {
	id := slackid.Hex(16)
	r.expires = w.clock.Now().Add(responseURLTTL)
	w.responseURLs[id] = r
	return w.baseURL + "/response/" + id
}

// responsePayload is the body of a post to a response URL, and of a command's ack.
type responsePayload struct {
	Text            string          `json:"text"`
	Blocks          json.RawMessage `json:"blocks"`
	ResponseType    string          `json:"response_type"`
	ReplaceOriginal *bool           `json:"replace_original"`
	DeleteOriginal  bool            `json:"delete_original"`
	ThreadTS        string          `json:"thread_ts"`
}

func (w *API) serveResponseURL(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	seq := w.logRequest("response_url", map[string]string{"body": string(body)})
	fault := w.faults.takeForMethod("response_url")
	if fault.appliesBefore() {
		w.finishRequest(seq, fault.status, false, fault.code, fault.name)
		if fault.applyBefore(w.clock, rw, r) {
			return
		}
	}
	if err == nil {
		err = w.handleResponseURL(r.PathValue("id"), body)
	}
	if fault.dropsAnswer() {
		w.finishRequest(seq, 0, err == nil, slackerr.CodeOf(err), fault.name)
		fault.applyAfter(r, rw)
		return
	}
	status := http.StatusOK
	switch code := slackerr.CodeOf(err); code {
	case "":
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = rw.Write([]byte("ok")) // the client may be gone
	case "used_url", "expired_url", "no_such_url":
		status = writeJSON(rw, http.StatusNotFound, jsonObject{"ok": false, "error": code})
	default:
		status = writeJSON(rw, http.StatusBadRequest, jsonObject{"ok": false, "error": code})
	}
	w.finishRequest(seq, status, err == nil, slackerr.CodeOf(err), fault.nameOrEmpty())
}

func (w *API) handleResponseURL(id string, body []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	u := w.responseURLs[id]
	switch {
	case u == nil:
		return slackerr.New("no_such_url")
	case w.clock.Now().After(u.expires):
		return slackerr.New("expired_url")
	case u.uses >= maxResponseURLUses:
		return slackerr.New("used_url")
	}
	var a responsePayload
	if json.Unmarshal(body, &a) != nil {
		return slackerr.New("invalid_payload")
	}
	if err := a.check(); err != nil {
		return err
	}
	u.uses++
	w.notify()
	switch {
	case a.DeleteOriginal:
		return w.replaceOriginal(u, a)
	case u.replace && (a.ReplaceOriginal != nil && *a.ReplaceOriginal):
		return w.replaceOriginal(u, a)
	}
	return w.showResponse(w.channels[u.channel], u.user, a, "response_url")
}

func (a responsePayload) check() error {
	if a.DeleteOriginal {
		return nil
	}
	if a.Text == "" && !isNonEmptyList(string(a.Blocks)) {
		return slackerr.New("no_text")
	}
	if isNonEmptyList(string(a.Blocks)) {
		return blockkit.Check(string(a.Blocks), false)
	}
	return nil
}

// replaceOriginal changes or deletes the message that the click was on. The caller holds mu.
func (w *API) replaceOriginal(u *responseURL, a responsePayload) error {
	if u.ephemeral {
		e := w.findEphemeral(u.user, u.ts)
		if e == nil {
			return slackerr.New("message_not_found")
		}
		e.Deleted = a.DeleteOriginal
		w.recordChange(change{kind: ephemeralChanged, user: e.User, ts: e.TS})
		if !a.DeleteOriginal {
			e.Text, e.Blocks = a.Text, blockkit.FillIDs(string(a.Blocks))
		}
		return nil
	}
	ch := w.channels[u.channel]
	m := ch.byTS[u.ts]
	if m == nil {
		return slackerr.New("message_not_found")
	}
	if a.DeleteOriginal {
		w.delete(ch, m)
		return nil
	}
	w.edit(ch, m, w.botUser, func(m *Message) {
		m.Text, m.Blocks = a.Text, blockkit.FillIDs(string(a.Blocks))
		if m.Blocks == nil {
			m.Blocks = richTextFromMrkdwn(a.Text)
		}
	})
	return nil
}

// showResponse is an answer as an ephemeral message, or to everybody when it says in_channel. The caller holds mu.
func (w *API) showResponse(ch *channelState, user string, a responsePayload, source string) error {
	if a.ResponseType == "in_channel" {
		m := w.newBotMessage(messageContent{text: a.Text, blocks: blockkit.FillIDs(string(a.Blocks))})
		if root := ch.byTS[a.ThreadTS]; root != nil {
			m.ThreadTS, m.ParentUserID = root.TS, root.User
		}
		w.post(ch, m)
		return nil
	}
	w.showEphemeral(Ephemeral{Channel: ch.id, User: user, ThreadTS: a.ThreadTS, Text: a.Text,
		Blocks: blockkit.FillIDs(string(a.Blocks)), Source: source})
	return nil
}

// say shows what an ack carries, if it carries something to be shown. The caller holds mu.
func (w *API) showAck(ch *channelState, user, thread, source string, ack json.RawMessage) error {
	var a responsePayload
	if len(ack) == 0 || string(ack) == "null" {
		return nil
	}
	var text string
	if json.Unmarshal(ack, &text) == nil {
		a.Text = text
	} else if err := json.Unmarshal(ack, &a); err != nil {
		return err
	}
	if a.Text == "" && !isNonEmptyList(string(a.Blocks)) {
		return nil
	}
	if err := a.check(); err != nil {
		return err
	}
	a.ThreadTS = thread
	return w.showResponse(ch, user, a, source)
}
