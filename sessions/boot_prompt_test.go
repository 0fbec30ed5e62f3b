package sessions

import (
	"strings"
	"testing"
)

func TestAnAgentIsToldHowToShowAFileWhereItHasAThread(t *testing.T) {
	t.Parallel()
	d := Definition{Name: "a", Source: SourceDeclared, Chat: ChatDefinition{Enabled: true}}
	silent := d
	silent.Chat.Enabled = false
	for _, c := range []struct {
		name                 string
		d                    Definition
		chatService, program string
		want                 string // empty: nothing of it
	}{
		{"in Slack", d, "Slack", "/opt/the-loop", "run: /opt/the-loop report file PATH --comment TEXT"},
		{"a path with a space and a quote", d, "Slack", "/my progs/it's", `run: '/my progs/it'"'"'s' report file`},
		{"Slack is off", d, "", "/opt/the-loop", ""},
		{"not announced", silent, "Slack", "/opt/the-loop", ""},
		{"no program", d, "Slack", "", ""},
	} {
		got, err := BootPrompt(c.d, c.chatService, c.program)
		if err != nil || !strings.Contains(got, c.want) || c.want == "" && strings.Contains(got, "report file") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}
