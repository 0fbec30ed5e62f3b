package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWarnings(t *testing.T) {
	t.Parallel()
	dir := privateTempDir(t)
	path, env := filepath.Join(dir, "etc", "c.yaml"), filepath.Join(dir, "etc", "agents.env")
	writeFile(t, env, "A=b\n")
	writeFile(t, path, `version: 1
state: {root: ../link/state}
env: {file: agents.env}
standingSessions:
  sessions:
  - {name: in, cwd: `+dir+`/work}
  - {name: beside, cwd: `+dir+`/work2}
  - {name: inherits}
channels:
  slack: {enabled: true, channel: C0123, apiUrl: "http://slack.test/api/"}
`)
	if err := os.Mkdir(filepath.Join(dir, "work"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "work"), filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	chmod(t, path, 0o660)
	chmod(t, env, 0o644)
	c, err := Loader{Workdir: dir, Home: dir}.Load(path)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.Warnings() {
		got = append(got, strings.ReplaceAll(p.String(), dir, "D"))
	}
	want := []string{
		"D/etc/c.yaml:1: D/etc/c.yaml can be written by others, who could make the-loop run anything — run chmod go-w on it",
		"D/etc/c.yaml:3: env.file: D/etc/agents.env holds credentials and has mode 0644 — run chmod 600 on it",
		"D/etc/c.yaml:6: standingSessions.sessions[0].cwd: works in D/work, which contains the state in D/link/state — move state.root out of the folders of agents",
		"D/etc/c.yaml:8: standingSessions.sessions[2]: works in D, which contains the state in D/link/state — move state.root out of the folders of agents",
		"D/etc/c.yaml:10: channels.slack.authorizedUsers: is empty, so nobody is authorized — add the member ids of those who may talk to sessions",
		"D/etc/c.yaml:10: channels.slack.apiUrl: sends the tokens over the network in the clear — use https",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMissingEnvFileAndAMissingChannelAreWarnings(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "version: 1\nenv: {file: /nowhere/x}\nchannels: {slack: {enabled: true, authorizedUsers: [U012]}}\n")
	got := c.Warnings()
	if len(got) != 2 || got[0].Key != "env.file" || got[1].Key != "channels.slack.channel" {
		t.Errorf("got %v", got)
	}
}
