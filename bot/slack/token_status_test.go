package slack

import (
	"strings"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/threads/chat"
)

// A bot token that Slack refuses for a while is reported until it is accepted again.
func TestABotTokenThatIsRefusedForAWhileIsReported(t *testing.T) {
	t.Parallel()
	x := newEnv(t)
	x.identified()
	told := 0
	x.client.tokenStatus.onChange = func() { told++ }
	x.Faults().InjectAPI(MethodPost, 2, localslack.Error("invalid_auth"))
	for range 2 {
		if _, err := x.client.Post(x.ctx, chat.Post{Channel: x.ch, Text: "x", Nonce: "n"}); ErrorCode(err) != "invalid_auth" {
			t.Errorf("posted: %v", err)
		}
		if why := x.client.tokenStatus.problem(); !strings.Contains(why, "invalid_auth") || !strings.Contains(why, "bot token") || told != 1 {
			t.Errorf("said %d times %q", told, why)
		}
	}
	x.Faults().InjectAPI(MethodOpen, 1, localslack.Error("fatal_error")) // it is not about the bot token
	if _, err := x.client.OpenConnection(x.ctx); err == nil {
		t.Error("no error")
	}
	x.Faults().InjectAPI(MethodPost, 1, localslack.HTML(200)) // nor is a page
	_, _ = x.client.Post(x.ctx, chat.Post{Channel: x.ch, Text: "x", Nonce: "n"})
	if x.client.tokenStatus.problem() == "" {
		t.Error("it was unsaid too early")
	}
	x.Faults().InjectAPI(MethodPost, 1, localslack.Error("msg_too_long")) // the token is taken; the message is not
	_, _ = x.client.Post(x.ctx, chat.Post{Channel: x.ch, Text: "x", Nonce: "n"})
	if why := x.client.tokenStatus.problem(); why != "" || told != 2 {
		t.Errorf("still said: %q, %d times", why, told)
	}
}
