package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/page"
	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/threads/binding"
)

// The controls of the page.
const (
	controlDropConnection  = "drop"
	controlFailCalls       = "no"
	controlDuplicateEvents = "twice"
	controlKillAgent       = "agent"
	controlToggleBot       = "bot"
	controlRotateKey       = "rotate"
)

// How many calls of the bot fail, and how many messages are delivered to it twice.
const (
	failedCalls      = 5
	duplicatedEvents = 3
)

// State implements [page.DemoController]: the terminal of the thread's session, and what record, binding and processes
// say now. What cannot be read is said, and the rest is shown.
func (d *live) State(ctx context.Context, channel, thread string) page.State {
	s := page.State{Controls: d.controls()}
	rows, err := d.app.Core.List(ctx)
	if err != nil {
		s.Note = oneLine(err)
		return s
	}
	binding, bound := d.findBinding(channel, thread)
	for _, row := range rows {
		if bound && row.ID == binding.ID {
			d.addSession(ctx, &s, row, binding)
			return s
		}
	}
	s.Note = "No session is bound to this thread."
	if thread == "" {
		s.Note = "Open the thread under an announcement to see its terminal."
	}
	s.Facts = append(s.Facts, d.botFacts(), d.events.facts(ctx))
	return s
}

// addSession adds the terminal and the facts of one session.
func (d *live) addSession(ctx context.Context, s *page.State, row sessions.Row, binding binding.Binding) {
	s.Title = row.Name + " · " + string(row.State)
	ansi, err := d.app.Core.PeekANSI(ctx, sessions.PeekRequest{Ref: row.Ref})
	switch {
	case errors.Is(err, sessions.ErrNotRunning):
		s.Note = "The session is " + string(row.State) + ", so there is no terminal."
	case err != nil:
		s.Note = oneLine(err)
	default:
		s.Screen = screenRuns(render.ParseScreen(ansi).Scrubbed(d.app.Scrub))
	}
	s.Facts = append(s.Facts, recordFacts(row), bindingFacts(binding), d.driftFacts(ctx, row), d.botFacts(), d.events.facts(ctx))
}

func screenRuns(screen render.Screen) [][]page.Run {
	lines := [][]page.Run{}
	for _, row := range screen.Runs() {
		line := []page.Run{}
		for _, r := range row {
			line = append(line, page.Run{Text: r.Text, FG: r.FG, BG: r.BG, Bold: r.Bold, Dim: r.Dim, Underline: r.Underline, Strike: r.Strike})
		}
		lines = append(lines, line)
	}
	return lines
}

// findBinding finds the binding of a thread in the bot's files.
func (d *live) findBinding(channel, thread string) (binding.Binding, bool) {
	paths, _ := filepath.Glob(filepath.Join(d.dir, "threads", "*.json")) // the pattern is well-formed
	for _, path := range paths {
		var b binding.Binding
		data, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(data, &b) == nil && thread != "" && b.Channel == channel && b.Root == thread {
			return b, true
		}
	}
	return binding.Binding{}, false
}

func plainFact(name, value string) page.Fact { return page.Fact{Name: name, Value: value} }

func markedFact(name, value string, good bool) page.Fact {
	f := page.Fact{Name: name, Value: value, Mark: "bad"}
	if good {
		f.Mark = "good"
	}
	return f
}

func recordFacts(row sessions.Row) page.FactGroup {
	lines := []page.Fact{markedFact("state", string(row.State), row.Running), plainFact("agent", row.Harness), plainFact("pane", row.TmuxTarget+" "+row.Pane),
		plainFact("conversation", shortID(row.Conversation)), plainFact("changed", clockTime(row.Changed))}
	if row.Detail != "" {
		lines = append(lines, plainFact("detail", row.Detail))
	}
	return page.FactGroup{Title: "Record", Lines: lines}
}

// bindingFacts says how far the replies of a thread are settled.
func bindingFacts(b binding.Binding) page.FactGroup {
	count := map[string]int{}
	for _, e := range b.Replies {
		name := string(e.State)
		if e.State == binding.StateSettled {
			name = string(e.Outcome)
		}
		count[name]++
	}
	lines := []page.Fact{plainFact("thread of", clockTime(localslack.TSTime(b.Root))), plainFact("settled to", clockTime(localslack.TSTime(b.Cursor)))}
	for _, name := range []string{"inflight", "held", "doubt", "offered", "approved", "accepted", "typed", "failed", "dropped", "withdrawn", "skipped", "command"} {
		if count[name] > 0 {
			lines = append(lines, plainFact(name, plural(count[name], "reply", "replies")))
		}
	}
	open := 0
	for _, q := range b.ResendPrompts {
		if q.Choice == "" {
			open++
		}
	}
	if open > 0 {
		lines = append(lines, plainFact("prompts", plural(open, "open question", "open questions")))
	}
	return page.FactGroup{Title: "Binding", Lines: lines}
}

// driftFacts says which names of the env file the agent holds with another value. Values appear nowhere.
func (d *live) driftFacts(ctx context.Context, row sessions.Row) page.FactGroup {
	f := page.FactGroup{Title: "Credentials", Lines: []page.Fact{plainFact("env file", filepath.Base(d.envFile()))}}
	drift := d.app.Core.Drift(ctx)
	if drift.Problem != "" {
		f.Lines = append(f.Lines, markedFact("problem", drift.Problem, false))
	}
	for _, r := range drift.Rows {
		switch {
		case r.ID != row.ID:
		case r.State == sessions.DriftStale:
			f.Lines = append(f.Lines, markedFact("stale", strings.Join(r.Stale, ", "), false))
		case r.State == sessions.DriftCurrent:
			f.Lines = append(f.Lines, markedFact("agent", "environment is current", true))
		default:
			f.Lines = append(f.Lines, plainFact("agent", "its environment cannot be read"))
		}
	}
	return f
}

// agentPID returns the process in the session's pane, 0 if there is none.
func (d *live) agentPID(ctx context.Context, id string) int {
	panes, err := d.app.Tmux.Panes(ctx)
	if err != nil {
		return 0
	}
	for _, p := range panes {
		if p.Mark == id && !p.Dead {
			return p.PID
		}
	}
	return 0
}

func (d *live) botFacts() page.FactGroup {
	f := page.FactGroup{Title: "Bot"}
	pid := d.bot.pid()
	if pid == 0 {
		f.Lines = append(f.Lines, markedFact("process", "not running", false))
		if last := d.bot.lastError(); last != "" {
			f.Lines = append(f.Lines, plainFact("last error", last))
		}
		return f
	}
	conns := d.slack.Connections()
	f.Lines = append(f.Lines, plainFact("process", strconv.Itoa(pid)), markedFact("socket", plural(conns, "connection", "connections"), conns == 1))
	state, alive, err := d.app.Registry.BotRunning()
	switch {
	case err == nil && alive && state.PID == pid:
		f.Lines = append(f.Lines, plainFact("threads", strconv.Itoa(state.Bound)+" bound"))
		if state.Problem != "" {
			f.Lines = append(f.Lines, markedFact("problem", state.Problem, false))
		}
	case err != nil:
		f.Lines = append(f.Lines, plainFact("lock", oneLine(err)))
	}
	return f
}

func (d *live) controls() []page.Control {
	life := page.Control{ID: controlToggleBot, Label: "Kill the bot", Description: "Kills its process without warning. Replies wait in Slack."}
	if d.bot.pid() == 0 {
		life = page.Control{ID: controlToggleBot, Label: "Start the bot", Description: "Starts it again. It catches up on replies written meanwhile."}
	}
	return []page.Control{
		{ID: controlDropConnection, Label: "Drop the connection", Description: "Cuts the bot's connection. It reconnects and catches up."},
		{ID: controlFailCalls, Label: "Fail Slack calls", Description: fmt.Sprintf("The bot's next %d calls to Slack fail.", failedCalls)},
		{ID: controlDuplicateEvents, Label: "Duplicate events", Description: fmt.Sprintf("The next %d messages are sent to the bot twice, as Slack sometimes does.", duplicatedEvents)},
		{ID: controlKillAgent, Label: "Kill the agent", Description: "Kills the agent's process. Its thread shows that, and Start resumes the conversation."},
		life,
		{ID: controlRotateKey, Label: "Rotate the key", Description: "Writes a new key to the env file. A running agent keeps the old one."},
	}
}

// RunControl implements [page.DemoController].
func (d *live) RunControl(ctx context.Context, control, channel, thread string) (string, error) {
	switch control {
	case controlDropConnection:
		d.slack.Faults().Drop()
		return "The connection was cut.", nil
	case controlFailCalls:
		d.slack.Faults().InjectAPI("*", failedCalls, localslack.Error("internal_error"))
		return fmt.Sprintf("The next %d calls of the bot fail.", failedCalls), nil
	case controlDuplicateEvents:
		d.slack.Faults().InjectDelivery("message.channels", duplicatedEvents, localslack.DuplicateNewEnvelope)
		return fmt.Sprintf("The next %d messages are sent to the bot twice.", duplicatedEvents), nil
	case controlKillAgent:
		return d.killAgent(ctx, channel, thread)
	case controlToggleBot:
		return d.toggleBot(ctx)
	case controlRotateKey:
		if err := d.rotateKey(); err != nil {
			return "", err
		}
		return KeyVariable + " has a new value.", nil
	}
	return "", fmt.Errorf("there is no control %q", control)
}

func (d *live) killAgent(ctx context.Context, channel, thread string) (string, error) {
	binding, bound := d.findBinding(channel, thread)
	if !bound {
		return "", errors.New("open the thread of a session first")
	}
	pid := d.agentPID(ctx, binding.ID)
	if pid <= 1 {
		return "", errors.New("its agent is not running")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return "", fmt.Errorf("kill process %d: %w", pid, err)
	}
	return fmt.Sprintf("The agent (process %d) was killed.", pid), nil
}

func (d *live) toggleBot(ctx context.Context) (string, error) {
	if pid := d.bot.pid(); pid != 0 {
		return fmt.Sprintf("The bot (process %d) was killed. Replies wait until it runs again.", pid), d.bot.signalAndWait(ctx, syscall.SIGKILL)
	}
	return "The bot is starting.", d.bot.start()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func clockTime(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.Local().Format("15:04:05")
}

func shortID(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}
