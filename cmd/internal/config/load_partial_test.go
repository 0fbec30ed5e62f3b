package config

import (
	"path/filepath"
	"testing"
)

func TestLoadPartialFindsTheStateAndDeclaresNoSession(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text         string
		root, socket string
		sure         bool
	}{
		"an unknown key": {"version: 1\nstate: {root: here}\nroutin: {}\nrouting: {tmux: {socketName: mine}}\n", "here", "mine", true},
		"wrong types":    {"state: {root: here}\nrouting: {tmux: [1]}\nstandingSessions: 7\n", "here", "the-loop", true},
		"no root":        {"version: 9\n", ".", "the-loop", true},
		"half a file":    {"version: 1\nstate: {root: \"he", ".", "the-loop", false},
		"a bad socket":   {"state: {root: here}\nrouting: {tmux: {socketName: \"../x\"}}\n", "here", "the-loop", true},
		"another's home": {"state: {root: ~root/x}\n", "~root/x", "the-loop", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(privateTempDir(t), "c.yaml")
			writeFile(t, path, c.text)
			got, sure := Loader{}.LoadPartial(path)
			want := filepath.Join(filepath.Dir(path), c.root)
			if c.root == "~root/x" {
				want = c.root
			}
			if got.StateRoot != want || got.Routing.Tmux.SocketName != c.socket || sure != c.sure {
				t.Errorf("root %s, socket %s, sure %t", got.StateRoot, got.Routing.Tmux.SocketName, sure)
			}
			if len(got.Standing.Sessions) != 0 || got.Slack.Enabled || len(got.Slack.AuthorizedUsers) != 0 || got.Routing.Tmux.HarnessKillGrace == 0 {
				t.Errorf("%+v", got)
			}
		})
	}
	if got, sure := (Loader{}).LoadPartial("/nowhere/c.yaml"); sure || got.StateRoot != "/nowhere" {
		t.Errorf("%s, %t", got.StateRoot, sure)
	}
}
