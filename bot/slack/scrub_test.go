package slack

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	slackgo "github.com/slack-go/slack"
	"pgregory.net/rapid"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/sessions/envstate"
	"the-loop/threads/chat"
)

// recordedSlack answers every request with success and keeps what it was sent, as text.
type recordedSlack struct{ sent []string }

func (r *recordedSlack) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		if values, err := url.ParseQuery(string(body)); err == nil && len(values) > 1 {
			for _, v := range values {
				r.sent = append(r.sent, v...)
			}
		} else {
			r.sent = append(r.sent, string(body))
		}
	}
	answer := `{"ok":true,"ts":"1.2","channel":"C1","file_id":"F1","upload_url":"https://slack.com/up","messages":[]}`
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(answer)), Request: req}, nil
}

// encodings are some of the forms of a value in a text; envstate's own tests have all of them.
func encodings(secret string) map[string]string {
	inJSON, _ := json.Marshal(map[string]string{"key": secret}) // a string encodes
	half := len(secret) / 2
	return map[string]string{
		"plain": "see " + secret + ".", "json": string(inJSON), "slashes": strings.ReplaceAll(string(inJSON), "/", `\/`),
		"wrapped": "│ " + secret[:half] + " │\n│ " + secret[half:] + " │", "query": "https://host/?k=" + url.QueryEscape(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)), "shell": "k='" + strings.ReplaceAll(secret, "'", `'\''`) + "'",
		"slack": "see " + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(secret),
	}
}

// containsSecret reports whether a value can be recovered from a text.
func containsSecret(text, secret string) bool {
	for name, form := range encodings(secret) {
		if name == "wrapped" {
			form = secret
		}
		if strings.Contains(strings.ReplaceAll(text, " │\n│ ", ""), form) {
			return true
		}
	}
	var decoded any
	if json.Unmarshal([]byte(text), &decoded) == nil {
		again, _ := json.Marshal(decoded)
		return strings.Contains(string(again), secret)
	}
	return false
}

func drawSecret(t *rapid.T) string {
	return rapid.StringMatching(`[G-Zg-z][A-Za-z0-9]{7}[A-Za-z0-9/+=&<"'$_.-]{4,20}[A-Za-z0-9]{4}`).Draw(t, "secret")
}

// No argument of any request holds a value of the environment.
func TestNoRequestHoldsAValueOfTheEnvironment(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := drawSecret(t)
		scrub := envstate.NewScrubber(map[string]string{"KEY": secret}).Scrub
		for name, text := range encodings(secret) {
			r := &recordedSlack{}
			c, err := NewClient(ClientOptions{BotToken: "xoxb-1", AppToken: "xapp-1", HTTP: &http.Client{Transport: r},
				Renderer: render.Renderer{}, Text: withoutNames.TextRules})
			if err != nil {
				t.Fatal(err)
			}
			c.SetHooks(Hooks{Scrubber: scrubWith(scrub)})
			c.self.Store(&Self{Scopes: []string{ScopeUpload}})
			sendEverywhere(c, text)
			if len(r.sent) < 30 {
				t.Fatalf("only %d arguments were sent", len(r.sent))
			}
			for _, sent := range r.sent {
				if containsSecret(sent, secret) {
					t.Fatalf("%s: %q is sent with %q in it", name, sent, secret)
				}
			}
		}
	})
}

// sendEverywhere sends a text in every argument that takes one. The answers do not matter.
func sendEverywhere(c *Client, text string) {
	ctx := context.Background()
	post := chat.Post{Channel: "C1", Root: "1.1", Text: text, Nonce: "n", Session: "s"}
	section := slackgo.NewSectionBlock(slackgo.NewTextBlockObject(slackgo.PlainTextType, text, false, false), nil, nil)
	blocks := slackgo.Blocks{BlockSet: []slackgo.Block{section, slackgo.NewInputBlock("b", slackgo.NewTextBlockObject(slackgo.PlainTextType, text, false, false), nil,
		&slackgo.PlainTextInputBlockElement{Type: slackgo.METPlainTextInput, ActionID: "a", InitialValue: text})}}
	_, _ = c.Post(ctx, post)
	_ = c.Update(ctx, "1.2", post)
	_ = c.PostEphemeral(ctx, "C1", "1.1", "U1", text, render.Button{Label: "Go", Action: "go"})
	_ = c.Respond(ctx, "https://hooks.slack.com/x", "1.1", text)
	_ = c.SetStatus(ctx, "C1", "1.1", text)
	file := chat.FileUpload{Name: text, Size: 1, ID: "F1"}
	_, _ = c.Upload(ctx, file, strings.NewReader("x"))
	_ = c.Share(ctx, file, post)
	_ = c.PostFile(ctx, "C1", "1.1", text, text, []byte("x"))
	_, _ = c.OpenView(ctx, "t", slackgo.ModalViewRequest{Type: slackgo.VTModal, Title: slackgo.NewTextBlockObject(slackgo.PlainTextType, text, false, false), Blocks: blocks})
	_ = c.UpdateView(ctx, "V1", slackgo.ModalViewRequest{Type: slackgo.VTModal, Blocks: blocks})
	_ = c.PublishHome(ctx, "U1", slackgo.HomeTabViewRequest{Type: slackgo.VTHomeTab, Blocks: blocks})
}

// scrubWith scrubs texts with a function.
type scrubWith func(string) string

func (s scrubWith) Scrub(text string) string { return s(text) }

func (s scrubWith) ScrubJSON(data []byte, isMachineField func(string) bool) []byte {
	return sessions.ScrubJSON(data, s, isMachineField)
}
