package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"the-loop/bot/localslack"
)

// customHarnessConfig is an agent of the operator's: a line of shell that says again what it is told.
const customHarnessConfig = `
harnesses:
  mytool:
    binary: sh
    args: ["-c", %q]
    reports: program
`

// said are the texts of the bot's in the thread, in order.
func (s *testEnv) botReplies(root string) (texts []string) {
	for _, m := range s.slack.Messages(s.channel) {
		if m.User == s.slack.BotUserID() && m.ThreadTS == root && m.TS != root {
			texts = append(texts, m.Text)
		}
	}
	return texts
}

func TestACustomHarnessPostsIntoItsThreadAlsoAfterBotDowntime(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t, localslack.Options{})
	config, err := os.ReadFile(s.configPath())
	if err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf(`while read -r line; do %s=1 %s report say --step "I think"; echo "you said $line" | %[1]s=1 %[2]s report say; done`, runVariable, os.Args[0])
	s.writeConfig(strings.Replace(string(config), "{name: helper}", "{name: helper, harness: mytool}", 1) + fmt.Sprintf(customHarnessConfig, script))
	b := s.startServe()
	s.mustRun("standing", "start", "helper")
	root := s.announcementTS()
	ts, err := s.ann.Reply(s.channel, root, "hello")
	if err != nil {
		t.Fatal(err)
	}
	s.waitFor("the receipt that proves nothing", func() bool { return s.slack.HasReaction(s.channel, ts, "keyboard") })
	s.waitFor("the answer", func() bool { return slices.Contains(s.botReplies(root), "you said hello") })
	if code := b.signalAndWait(syscall.SIGTERM); code != exitOK {
		t.Fatalf("exit code %d\n%s", code, b.stderr)
	}
	s.mustRun("standing", "say", "helper", "--text", "are you there?")
	s.startServe()
	s.waitFor("the answer of before", func() bool { return slices.Contains(s.botReplies(root), "you said are you there?") })
	if got := s.botReplies(root); slices.Contains(got, "I think") || len(got) != 2 {
		t.Errorf("the thread has %q", got)
	}
}
