package command

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"the-loop/threads/chat"
)

var update = flag.Bool("update", false, "write the golden files")

func TestEveryVerbIsCompleteAndFound(t *testing.T) {
	t.Parallel()
	for _, v := range verbs() {
		if v.slash == nil && v.thread == nil || v.who == Nobody || v.run == nil && v.name != chat.VerbRaw {
			t.Errorf("the verb %s is incomplete: %+v", v.name, v)
		}
		for _, p := range []place{inSlash, inThread} {
			u, found := v.usage(p), find(v.name, p)
			if (found != nil) != (u != nil) {
				t.Errorf("%s in place %d: found %v", v.name, p, found)
			}
			if u != nil && (u.help == "" || !strings.Contains(v.usageText("/x", p), "/x "+v.name)) {
				t.Errorf("%s is not explained in place %d", v.name, p)
			}
			for flag := range v.flags {
				if u != nil && !strings.Contains(u.args, "--"+flag) {
					t.Errorf("%s: the usage in place %d does not have --%s", v.name, p, flag)
				}
			}
		}
	}
	if n := len(UsageHint()); n > 1000 {
		t.Errorf("the hint has %d characters", n)
	}
}

func TestTheHelpIsAsInItsFile(t *testing.T) {
	t.Parallel()
	for file, text := range map[string]string{"help.txt": helpText("/the-loop", inSlash), "help_thread.txt": helpText("", inThread)} {
		path := filepath.Join("testdata", file)
		if *update {
			if err := os.WriteFile(path, []byte(text+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(path); err != nil || text+"\n" != string(want) {
			t.Errorf("%v; %s is now\n%s", err, file, text)
		}
	}
}

func TestACommandOfNobodyIsRefused(t *testing.T) {
	t.Parallel()
	c := New(Options{})
	for _, v := range verbs() {
		if answer, err := c.Run(t.Context(), Call{Command: chat.Command{Verb: v.name}, Prefix: "/x"}); err == nil {
			t.Errorf("%s: %+v", v.name, answer)
		}
	}
}
