package core

import (
	"strings"
	"testing"

	"the-loop/sessions"
)

func TestAnAgentIsToldHowToShowAFileWhereItHasAThread(t *testing.T) {
	t.Parallel()
	d := sessions.Definition{Name: "a", Source: sessions.SourceDeclared, Chat: sessions.ChatDefinition{Enabled: true}}
	silent := d
	silent.Chat.Enabled = false
	for _, c := range []struct {
		name string
		d    sessions.Definition
		cfg  Config
		want string // empty: nothing of it
	}{
		{"in Slack", d, Config{ChatService: "Slack", Program: "/opt/the-loop"}, "run: /opt/the-loop report file PATH --comment TEXT"},
		{"a path with a space and a quote", d, Config{ChatService: "Slack", Program: "/my progs/it's"}, `run: '/my progs/it'"'"'s' report file`},
		{"Slack is off", d, Config{Program: "/opt/the-loop"}, ""},
		{"not announced", silent, Config{ChatService: "Slack", Program: "/opt/the-loop"}, ""},
		{"no program", d, Config{ChatService: "Slack"}, ""},
	} {
		got, err := bootPrompt(c.d, c.cfg)
		if err != nil || !strings.Contains(got, c.want) || c.want == "" && strings.Contains(got, "report file") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}
