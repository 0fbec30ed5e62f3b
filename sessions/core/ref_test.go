package core_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/smallagent"
	"the-loop/sessions/tmux/tmuxtest"
)

func TestARefThatIsNotOfTheShapeIsRefusedWithTheShape(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "github:", "github:acme", "github:acme/shop", "github:acme/shop#", "github:acme/shop#0", "github:acme/shop#07",
		"github:acme/shop#-1", "github:acme/shop#1x", "github:acme/shop#1\n", "github:/shop#1", "github:acme/#1", "github:acme/.#1",
		"github:acme/..#1", "github:-acme/shop#1", "github:ac.me/shop#1", "github:acme/sh op#1", "github:acme/shop/x#1", "github:acme/shop#1#2",
		"github:acme/shöp#1", "GitHub:acme/shop#1", " github:acme/shop#1", "github:" + strings.Repeat("a", 40) + "/shop#1",
		"github:acme/" + strings.Repeat("a", 101) + "#1", "github:acme/shop#12345678901", "gitlab:acme/shop#1"} {
		var bad *sessions.RefError
		if got, err := sessions.ParseRef(s); !errors.As(err, &bad) || !strings.Contains(err.Error(), "github:OWNER/REPO#N") {
			t.Errorf("ParseRef(%q) = %q, %v", s, got, err)
		}
		if got, err := sessions.ParseWorkItem(s); !errors.As(err, &bad) {
			t.Errorf("ParseWorkItem(%q) = %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"github:acme/shop#7", "github:A-b_C/x.Y_z-0#1234567890", "github:a/.github#1", "github:acme/...#1"} {
		got, err := sessions.ParseWorkItem(s)
		if err != nil || string(got) != s || got.Kind() != sessions.KindWorkItem {
			t.Errorf("ParseWorkItem(%q) = %q, %v", s, got, err)
		}
	}
	if got, err := sessions.ParseWorkItem("standing:a"); err == nil {
		t.Errorf("a standing session is a work item: %q", got)
	}
}

func TestTmuxKeepsTheNamesOfWorkItemsAsTheyAre(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(tmuxtest.Dir(t), "s")
	t.Cleanup(func() { tmuxtest.EndServer(t, socket) })
	plain := regexp.MustCompile(`^loop-github-[a-z0-9_-]+$`)
	for _, ref := range []sessions.Ref{"github:Acme/shop.web#7", "github:standing/helper#1", "github:a_b/..x#2", "github:acme/" +
		sessions.Ref(strings.Repeat("A.", 50)) + "#1234567890"} {
		if _, err := sessions.ParseWorkItem(string(ref)); err != nil {
			t.Fatal(err)
		}
		name := ref.TmuxName()
		out, err := exec.Command("tmux", "-f", "/dev/null", "-S", socket, "new-session", "-d", "-P", "-F", "#{session_name}", "-s", name, "sleep", "100").CombinedOutput()
		if kept := strings.TrimSpace(string(out)); err != nil || kept != name || !plain.MatchString(name) {
			t.Errorf("%s: tmux keeps %q as %q, %v", ref, name, kept, err)
		}
		if strings.HasPrefix(name, sessions.StandingRef("").TmuxName()) {
			t.Errorf("%s could be a standing session", name)
		}
	}
}

func TestWorkItemsThatFallOnOneNameAreRefusedByEveryVerb(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	pane := w.pane(item)
	for _, other := range []sessions.Ref{"github:acme/shop-web#7", "github:Acme/shop-web#7", "github:Acme-shop/web#7"} {
		verbs := map[string]func() error{
			"register": func() error {
				_, err := w.Register(t.Context(), sessions.RegisterRequest{Ref: other, Cwd: w.dir})
				return err
			},
			"deliver": func() error {
				_, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: other, Text: "x"})
				return err
			},
			"reply": func() error {
				_, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: other, Text: "x"})
				return err
			},
			"start":  func() error { _, err := w.Start(t.Context(), sessions.StartRequest{Ref: other}); return err },
			"attach": func() error { _, err := w.Attach(t.Context(), sessions.AttachRequest{Ref: other}); return err },
			"close":  func() error { _, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: other}); return err },
		}
		for name, verb := range verbs {
			if err := verb(); !errors.Is(err, sessions.ErrNameTaken) || !strings.Contains(err.Error(), item) {
				t.Errorf("%s of %s: %v", name, other, err)
			}
		}
	}
	if w.pane(item) != pane || len(w.panes()) != 1 {
		t.Errorf("%+v", w.panes())
	}
}

// Spellings that differ in case are one work item: one record, one pane, one memory of deliveries, under the spelling that was
// registered.
func TestEveryVerbKnowsAWorkItemInEverySpelling(t *testing.T) {
	t.Parallel()
	w := newWorkItemEnv(t, nil)
	other := sessions.Ref("github:aCME/SHOP.web#7")
	_, err := w.Register(t.Context(), sessions.RegisterRequest{Ref: other, Cwd: w.dir})
	if !errors.Is(err, sessions.ErrNameTaken) || !strings.Contains(err.Error(), item+" is registered already") {
		t.Errorf("register: %v", err)
	}
	for id, want := range map[string]sessions.Outcome{"first": sessions.OutcomeRepeated, "second": sessions.OutcomeDelivered} {
		d, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: other, DeliveryID: id, Text: "!" + id, Wait: time.Minute})
		if err != nil || d.Row.Outcome != want || d.Row.Ref != item {
			t.Errorf("deliver %s: %+v, %v", id, d, err)
		}
	}
	named := func(text string) bool { return strings.Contains(text, item) && strings.HasSuffix(text, "!second") }
	if got := w.transcriptTexts(item, smallagent.TypeUser); !slices.ContainsFunc(got, named) {
		t.Errorf("the agent was told %q", got)
	}
	w.awaitReady(item)
	if _, err := w.Submit(t.Context(), sessions.SubmitRequest{Ref: other, Text: "a reply"}); err != nil {
		t.Errorf("reply: %v", err)
	}
	if p, err := w.Peek(t.Context(), sessions.PeekRequest{Ref: other}); err != nil || p.Row.Ref != item {
		t.Errorf("peek: %+v, %v", p.Row, err)
	}
	if row, err := w.Start(t.Context(), sessions.StartRequest{Ref: other}); err != nil || row.Ref != item || row.Outcome != sessions.OutcomeAlreadyRunning {
		t.Errorf("start: %+v, %v", row, err)
	}
	if rows, err := w.List(t.Context()); err != nil || len(rows) != 1 || len(w.panes()) != 1 {
		t.Errorf("%+v, %v, %+v", rows, err, w.panes())
	}
	if row, err := w.Delete(t.Context(), sessions.DeleteRequest{Ref: other}); err != nil || row.Ref != item || row.Outcome != sessions.OutcomeClosed {
		t.Errorf("close: %+v, %v", row, err)
	}
}

func TestR3_1_R3_2_NoEventReachesAStandingSession(t *testing.T) {
	t.Parallel()
	w := newEnv(t, nil, sessions.Definition{Name: "a"})
	w.start("a")
	w.register(item)
	var bad *sessions.RefError
	if _, err := w.Deliver(t.Context(), sessions.DeliverRequest{Ref: ref("a"), Text: "x"}); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
	if _, err := w.Register(t.Context(), sessions.RegisterRequest{Ref: ref("a"), Cwd: w.dir}); !errors.As(err, &bad) {
		t.Errorf("%v", err)
	}
	for kind, want := range map[string]sessions.Ref{sessions.KindStanding: ref("a"), sessions.KindWorkItem: item} {
		rows, err := w.ListFiltered(t.Context(), sessions.ListRequest{Kind: kind})
		if err != nil || len(rows) != 1 || rows[0].Ref != want {
			t.Errorf("%s: %+v, %v", kind, rows, err)
		}
	}
	all, err := w.StopAll(t.Context())
	if err != nil || len(all.Rows) != 1 || all.Rows[0].Ref != ref("a") {
		t.Errorf("%+v, %v", all, err)
	}
}
