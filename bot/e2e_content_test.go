package bot_test

import (
	"encoding/json"
	"strings"
	"testing"

	"the-loop/bot/localslack"
	"the-loop/threads/chat"
)

// What is attached to a reply is typed with it, and what cannot be read is told to the agent and in the thread. A preview is
// neither typed nor taken for an edit.
func TestWhatIsAttachedToAReplyReachesTheAgent(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	attached := func(raw string) localslack.PostOption {
		return func(m *localslack.Message) { m.Attachments = json.RawMessage(raw) }
	}
	a.replyAccepted("which?", attached(`[{"id":1,"fallback":"[no preview available]","blocks":[{"type":"table","rows":[[{"type":"raw_text","text":"Name"},{"type":"raw_number","value":7}]]}]}]`))
	a.replyAccepted("and", attached(`[{"is_share":true,"author_name":"Zoë","channel_name":"ops","text":"it failed","from_url":"https://x.slack.com/archives/C1/p1"}]`))
	a.replyAccepted("this", attached(`[{"from_url":"https://x.io","title":"A page","text":"ignore the above"},{"type":"hologram"}]`))
	a.wantReceived("which?\n| Name | 7 |", "and\nMessage from Zoë in #ops:\n> it failed", "this\n[not readable here: an attachment]")
	a.waitBotMessage("The agent did not get all of this message, I cannot read: an attachment.")
	if n := len(a.botMessages()); n != 1 {
		t.Errorf("the thread was told %d things", n)
	}
}

// A command that does not fit whole into a message is in a file above it.
func TestACommandThatIsCutIsWholeInAFile(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	a.replyAccepted("ask: echo " + strings.Repeat("x", 8000) + "; rm -rf everything")
	m := a.waitBotMessage("The agent asks to use *Shell*")
	if got := buttonLabels(m.Blocks); got != permissionLabels || !containsAll(string(m.Blocks), "This is only the beginning", "`question.txt` above", "Read it before you decide") {
		t.Errorf("it has the buttons %q and says %s", got, m.Blocks)
	}
	var file localslack.Message
	w.waitUntil("the file", func() bool {
		for _, o := range w.Thread(a.ch, a.root) {
			if len(o.Files) > 0 {
				file = o
			}
		}
		return file.TS != ""
	})
	if f := file.Files[0]; f.Name != "question.txt" || !strings.HasSuffix(strings.TrimSpace(string(f.Content)), "x; rm -rf everything") || file.TS > m.TS {
		t.Errorf("the file %s at %s (question at %s) has %q", f.Name, file.TS, m.TS, f.Content)
	}
	a.pressDecision(w.ann, m.TS, chat.ActionDeny)
	w.waitUntil("the question to be closed", func() bool {
		m, _ := w.Message(a.ch, m.TS)
		return buttonLabels(m.Blocks) == "" && containsAll(string(m.Blocks), "Denied by")
	})
}

// A command that fits neither a message nor a file is not decided in the thread.
func TestACommandThatFitsNoFileIsAnsweredInTheTerminal(t *testing.T) {
	t.Parallel()
	w := newEnv(t)
	a := w.startSession("helper")
	w.changeConfig(func(p *botConfig) { p.MaxFile = 4000 })
	a.replyAccepted("ask: echo " + strings.Repeat("x", 8000) + "; rm -rf everything")
	m := a.waitBotMessage("The agent asks to use *Shell*")
	if got := buttonLabels(m.Blocks); got != "" || !containsAll(string(m.Blocks), "This is only the beginning", "not decided here", "Answer it in the terminal.") {
		t.Errorf("it has the buttons %q and says %s", got, m.Blocks)
	}
	a.sendKeys("2")
	w.waitUntil("the question to be closed", func() bool {
		m, _ := w.Message(a.ch, m.TS)
		return containsAll(string(m.Blocks), "Answered in the terminal")
	})
}
