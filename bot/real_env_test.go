package bot_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"the-loop/sessions"
	"the-loop/sessions/harness/claude"
	"the-loop/sessions/harness/codex"
	"the-loop/sessions/harness/gemini"
	"the-loop/sessions/harness/harnesstest"
	"the-loop/sessions/harness/opencode"
	"the-loop/threads/relay"
)

// realAgent is an agent's own program with what it needs to run unattended, in a home of its own.
type realAgent struct {
	Name     string
	Args     []string
	Claude   claude.Harness
	Codex    codex.Harness
	Gemini   gemini.Harness
	OpenCode opencode.Harness
	Env      map[string]string
	Environ  []string
}

// harness is the one of the name; a plan is written as JSON, so that it has a field for each.
func (r *realAgent) harness() sessions.Harness {
	switch r.Name {
	case codex.Name:
		return r.Codex
	case gemini.Name:
		return r.Gemini
	case opencode.Name:
		return r.OpenCode
	}
	return r.Claude
}

// environ is the tmux server's; nil: the server's own choice.
func (r *realAgent) environ() []string {
	if r == nil {
		return nil
	}
	return r.Environ
}

func (r *realAgent) envFile() func() (sessions.EnvFile, error) {
	return func() (sessions.EnvFile, error) { return sessions.EnvFile{Configured: true, Values: r.Env}, nil }
}

// realSession is a world with a real agent, whose model is on loopback. Its bot is a process of its own.
type realSession struct {
	*testSession
	model      *harnesstest.Model
	cwd        string
	botProcess *botProcess
}

// newClaudeSession is a talk with Claude Code.
func newClaudeSession(t *testing.T, changes ...func(*envOptions)) *realSession {
	t.Helper()
	return newRealSession(t, claude.Name, changes...)
}

// newRealSession starts a bot and a session, and waits for the answer to its first prompt.
func newRealSession(t *testing.T, name string, changes ...func(*envOptions)) *realSession {
	t.Helper()
	model := harnesstest.NewModel(t)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the model was told %.300q", model.UserTexts())
		}
	})
	w := newEnv(t, append([]func(*envOptions){withoutBot, withoutRateLimits, func(s *envOptions) {
		s.patience = 6 * time.Minute // on a machine that does a lot else
		s.config = func(p *botConfig) { p.Answers, p.Probe = relay.AnswersFinal, 2*time.Second }
		s.real = func(dir string) *realAgent { return newRealAgent(t, name, dir, model) }
	}}, changes...)...)
	k := &realSession{model: model, cwd: filepath.Join(w.botConfig.TmuxDir, "work"), botProcess: w.startBotProcess()}
	t.Cleanup(func() {
		if t.Failed() && k.testSession != nil {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			screen, err := w.core.Peek(ctx, sessions.PeekRequest{Ref: k.ref})
			t.Logf("the agent's screen (%v):\n%s", err, screen.Text)
		}
	})
	k.testSession = w.startDefined(sessions.Definition{Name: "real", Source: sessions.SourceDeclared, Harness: name, HarnessArgs: w.botConfig.Real.Args, Cwd: k.cwd,
		Chat: sessions.ChatDefinition{Enabled: true}})
	k.waitAnnounced()
	k.testSession.waitBotMessage("Answer ")
	k.waitIdle()
	return k
}

// newRealAgent sets an agent's program up in a folder; the session's folder is work below it.
func newRealAgent(t *testing.T, name, dir string, model *harnesstest.Model) *realAgent {
	t.Helper()
	home, root, work := filepath.Join(dir, "home"), filepath.Join(dir, "root"), filepath.Join(dir, "work")
	for _, d := range []string{home, work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	a := map[string]func() harnesstest.Agent{
		claude.Name:   func() harnesstest.Agent { return harnesstest.Claude(t, home, model) },
		codex.Name:    func() harnesstest.Agent { return harnesstest.Codex(t, home, work, model) },
		gemini.Name:   func() harnesstest.Agent { return harnesstest.Gemini(t, home, model) },
		opencode.Name: func() harnesstest.Agent { return harnesstest.OpenCode(t, home, model) },
	}[name]()
	return &realAgent{Name: name, Args: a.Args, Env: a.Env, Environ: harnesstest.Environ(t, home),
		Claude: claude.Harness{Binary: a.Binary, SettingsDir: filepath.Join(root, "run", "claude"), ReportDir: filepath.Join(root, "reports"),
			Hook: []string{os.Args[0], roleHook}, PermissionDir: filepath.Join(root, "run", "ask"), AcceptTrust: true, Home: home},
		Codex: codex.Harness{Binary: a.Binary, Home: home}, Gemini: gemini.Harness{Binary: a.Binary, Home: home},
		OpenCode: opencode.Harness{Binary: a.Binary}}
}

// waitIdle waits until the agent has been ready for a while: some commands are refused while a turn runs.
func (k *realSession) waitIdle() {
	k.env.t.Helper()
	var since time.Time
	k.env.waitUntil("the agent to be at rest", func() bool {
		view, err := k.env.core.View(k.env.ctx, sessions.ViewRequest{Ref: k.ref})
		if err != nil || view.State != sessions.ViewReady {
			since = time.Time{}
		} else if since.IsZero() {
			since = time.Now()
		}
		return !since.IsZero() && time.Since(since) > 1500*time.Millisecond
	})
}

// replyAndWaitAnswer writes a reply that the agent answers with this text, and waits for the answer.
func (k *realSession) replyAndWaitAnswer(text string) {
	k.env.t.Helper()
	k.replyAccepted("[[say " + text + "]]")
	k.wantAnswerOnce(text)
}

// wantAnswerOnce waits for a text in the thread, and fails when it is there more often.
func (k *realSession) wantAnswerOnce(text string) {
	k.env.t.Helper()
	n := 0
	k.env.waitUntil(fmt.Sprintf("the answer %q", text), func() bool {
		n = 0
		for _, m := range k.botMessages() {
			if m.Text == text {
				n++
			}
		}
		return n > 0
	})
	if n != 1 {
		k.env.t.Errorf("%q was posted %d times", text, n)
	}
}

// pasteTags is the wrapper that newer versions put around what is pasted.
var pasteTags = regexp.MustCompile(`</?pasted_content\b[^>]*>`)

// normalizeSpace makes texts comparable: the agent trims lines.
func normalizeSpace(text string) string {
	return strings.Join(strings.Fields(pasteTags.ReplaceAllString(text, " ")), " ")
}

// modelReceived is how often the model was told a text in the newest conversation.
func (k *realSession) modelReceived(text string) int {
	n := 0
	for _, h := range k.model.UserTexts() {
		if normalizeSpace(h) == normalizeSpace(text) {
			n++
		}
	}
	return n
}
