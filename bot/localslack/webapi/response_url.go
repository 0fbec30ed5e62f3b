package webapi

import (
	"encoding/json"
	"io"
	"net/http"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

const maxResponseURLUses = 5

// responsePayload is the body of a post to a response URL, and of a command's ack.
type responsePayload struct {
	Text            string          `json:"text"`
	Blocks          json.RawMessage `json:"blocks"`
	ResponseType    string          `json:"response_type"`
	ReplaceOriginal *bool           `json:"replace_original"`
	DeleteOriginal  bool            `json:"delete_original"`
	ThreadTS        string          `json:"thread_ts"`
}

// ServeResponseURL serves a post to a response URL.
func (w *API) ServeResponseURL(rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	seq := w.LogRequest("response_url", map[string]string{"body": string(body)})
	fault := w.Script.TakeForMethod("response_url")
	if fault.AppliesBefore() {
		w.FinishRequest(seq, fault.Status, false, fault.Code, fault.Name)
		if fault.ApplyBefore(w.Clock, rw, r) {
			return
		}
	}
	if err == nil {
		err = w.handleResponseURL(r.PathValue("id"), body)
	}
	if fault.DropsAnswer() {
		w.FinishRequest(seq, 0, err == nil, slackerr.CodeOf(err), fault.Name)
		fault.ApplyAfter(r, rw)
		return
	}
	status := http.StatusOK
	switch code := slackerr.CodeOf(err); code {
	case "":
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = rw.Write([]byte("ok")) // the client may be gone
	case "used_url", "expired_url", "no_such_url":
		status = WriteJSON(rw, http.StatusNotFound, store.Object{"ok": false, "error": code})
	default:
		status = WriteJSON(rw, http.StatusBadRequest, store.Object{"ok": false, "error": code})
	}
	w.FinishRequest(seq, status, err == nil, slackerr.CodeOf(err), fault.NameOrEmpty())
}

func (w *API) handleResponseURL(id string, body []byte) error {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	u := w.ResponseURLs[id]
	switch {
	case u == nil:
		return slackerr.New("no_such_url")
	case w.Clock.Now().After(u.Expires):
		return slackerr.New("expired_url")
	case u.Uses >= maxResponseURLUses:
		return slackerr.New("used_url")
	}
	var a responsePayload
	if json.Unmarshal(body, &a) != nil {
		return slackerr.New("invalid_payload")
	}
	if err := a.check(); err != nil {
		return err
	}
	u.Uses++
	w.Notify()
	switch {
	case a.DeleteOriginal:
		return w.replaceOriginal(u, a)
	case u.Replace && (a.ReplaceOriginal != nil && *a.ReplaceOriginal):
		return w.replaceOriginal(u, a)
	}
	return w.showResponse(w.ChannelsByID[u.Channel], u.User, a, "response_url")
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

// replaceOriginal changes or deletes the message that the click was on. The caller holds Mu.
func (w *API) replaceOriginal(u *store.ResponseURL, a responsePayload) error {
	if u.Ephemeral {
		e := w.FindEphemeral(u.User, u.TS)
		if e == nil {
			return slackerr.New("message_not_found")
		}
		e.Deleted = a.DeleteOriginal
		w.RecordChange(store.Change{Kind: store.EphemeralChanged, User: e.User, TS: e.TS})
		if !a.DeleteOriginal {
			e.Text, e.Blocks = a.Text, blockkit.FillIDs(string(a.Blocks))
		}
		return nil
	}
	ch := w.ChannelsByID[u.Channel]
	m := ch.ByTS[u.TS]
	if m == nil {
		return slackerr.New("message_not_found")
	}
	if a.DeleteOriginal {
		w.Delete(ch, m)
		return nil
	}
	w.Edit(ch, m, w.BotUser, func(m *store.Message) {
		m.Text, m.Blocks = a.Text, blockkit.FillIDs(string(a.Blocks))
		if m.Blocks == nil {
			m.Blocks = store.RichTextFromMrkdwn(a.Text)
		}
	})
	return nil
}

// showResponse is an answer as an ephemeral message, or to everybody when it says in_channel. The caller holds Mu.
func (w *API) showResponse(ch *store.ChannelState, user string, a responsePayload, source string) error {
	if a.ResponseType == "in_channel" {
		m := w.newBotMessage(messageContent{text: a.Text, blocks: blockkit.FillIDs(string(a.Blocks))})
		if root := ch.ByTS[a.ThreadTS]; root != nil {
			m.ThreadTS, m.ParentUserID = root.TS, root.User
		}
		w.Post(ch, m)
		return nil
	}
	w.ShowEphemeral(store.Ephemeral{Channel: ch.ID, User: user, ThreadTS: a.ThreadTS, Text: a.Text,
		Blocks: blockkit.FillIDs(string(a.Blocks)), Source: source})
	return nil
}

// ShowAck shows what an ack carries, if it carries something to be shown. The caller holds Mu.
func (w *API) ShowAck(ch *store.ChannelState, user, thread, source string, ack json.RawMessage) error {
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
