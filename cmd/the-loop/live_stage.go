package main

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

	"the-loop/bot/render"
	"the-loop/bot/workspace"
	"the-loop/sessions"
	"the-loop/threads"
)

// The controls of the page.
const (
	controlDrop   = "drop"
	controlNo     = "no"
	controlTwice  = "twice"
	controlAgent  = "agent"
	controlBot    = "bot"
	controlRotate = "rotate"
)

// How many calls of the bot are answered with an error, and how many messages it is told of twice.
const (
	slackSaysNo = 5
	slackTwice  = 3
)

// Scene implements [workspace.Backstage]: the terminal of the thread's session, and what record, binding and processes
// say now. What cannot be read is said, and the rest is shown.
func (d *liveDemo) Scene(ctx context.Context, channel, thread string) workspace.Scene {
	s := workspace.Scene{Controls: d.controls()}
	rows, err := d.app.core.List(ctx)
	if err != nil {
		s.Note = about(err)
		return s
	}
	binding, bound := d.binding(channel, thread)
	for _, row := range rows {
		if bound && row.ID == binding.ID {
			d.session(ctx, &s, row, binding)
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

// session fills in what there is to see of one session.
func (d *liveDemo) session(ctx context.Context, s *workspace.Scene, row sessions.Row, binding threads.Binding) {
	s.Title = row.Name + " · " + string(row.State)
	ansi, err := d.app.core.PeekANSI(ctx, sessions.PeekRequest{Ref: row.Ref})
	switch {
	case errors.Is(err, sessions.ErrNotRunning):
		s.Note = "The session is " + string(row.State) + ": there is no terminal."
	case err != nil:
		s.Note = about(err)
	default:
		s.Screen = screenRuns(render.ParseScreen(ansi).Scrubbed(d.scrub))
	}
	s.Facts = append(s.Facts, recordFacts(row), bindingFacts(binding), d.drift(ctx, row), d.botFacts(), d.events.facts(ctx))
}

func screenRuns(screen render.Screen) [][]workspace.Run {
	lines := [][]workspace.Run{}
	for _, row := range screen.Runs() {
		line := []workspace.Run{}
		for _, r := range row {
			line = append(line, workspace.Run{Text: r.Text, FG: r.FG, BG: r.BG, Bold: r.Bold, Dim: r.Dim, Underline: r.Underline, Strike: r.Strike})
		}
		lines = append(lines, line)
	}
	return lines
}

// binding finds the binding of a thread in the bot's files.
func (d *liveDemo) binding(channel, thread string) (threads.Binding, bool) {
	paths, _ := filepath.Glob(filepath.Join(d.dir, "threads", "*.json")) // the pattern is well-formed
	for _, path := range paths {
		var b threads.Binding
		data, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(data, &b) == nil && thread != "" && b.Channel == channel && b.Root == thread {
			return b, true
		}
	}
	return threads.Binding{}, false
}

func fact(name, value string) workspace.Fact { return workspace.Fact{Name: name, Value: value} }

func marked(name, value string, good bool) workspace.Fact {
	f := workspace.Fact{Name: name, Value: value, Mark: "bad"}
	if good {
		f.Mark = "good"
	}
	return f
}

func recordFacts(row sessions.Row) workspace.Facts {
	lines := []workspace.Fact{marked("state", string(row.State), row.Running), fact("agent", row.Harness), fact("pane", row.TmuxTarget+" "+row.Pane),
		fact("conversation", short(row.Conversation)), fact("changed", moment(row.Changed))}
	if row.Detail != "" {
		lines = append(lines, fact("detail", row.Detail))
	}
	return workspace.Facts{Title: "Record", Lines: lines}
}

// bindingFacts say how far a thread is settled.
func bindingFacts(b threads.Binding) workspace.Facts {
	count := map[string]int{}
	for _, e := range b.Replies {
		name := string(e.State)
		if e.State == threads.StateSettled {
			name = string(e.Outcome)
		}
		count[name]++
	}
	lines := []workspace.Fact{fact("thread of", moment(workspace.TSTime(b.Root))), fact("settled to", moment(workspace.TSTime(b.Cursor)))}
	for _, name := range []string{"inflight", "held", "doubt", "offered", "approved", "accepted", "typed", "failed", "dropped", "withdrawn", "skipped", "command"} {
		if count[name] > 0 {
			lines = append(lines, fact(name, plural(count[name], "reply", "replies")))
		}
	}
	open := 0
	for _, q := range b.ResendPrompts {
		if q.Choice == "" {
			open++
		}
	}
	if open > 0 {
		lines = append(lines, fact("asked", plural(open, "open question", "open questions")))
	}
	return workspace.Facts{Title: "Binding", Lines: lines}
}

// drift says which names of the env file the agent holds with another value. Values appear nowhere.
func (d *liveDemo) drift(ctx context.Context, row sessions.Row) workspace.Facts {
	f := workspace.Facts{Title: "Credentials", Lines: []workspace.Fact{fact("env file", filepath.Base(d.envFile()))}}
	drift := d.app.core.Drift(ctx)
	if drift.Problem != "" {
		f.Lines = append(f.Lines, marked("problem", drift.Problem, false))
	}
	for _, r := range drift.Rows {
		switch {
		case r.ID != row.ID:
		case r.State == sessions.DriftStale:
			f.Lines = append(f.Lines, marked("stale", strings.Join(r.Stale, ", "), false))
		case r.State == sessions.DriftCurrent:
			f.Lines = append(f.Lines, marked("agent", "holds what is declared", true))
		default:
			f.Lines = append(f.Lines, fact("agent", "its environment cannot be read"))
		}
	}
	return f
}

// agentPID is the process in the session's pane; 0: there is none.
func (d *liveDemo) agentPID(ctx context.Context, id string) int {
	panes, err := d.app.tmux.Panes(ctx)
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

func (d *liveDemo) botFacts() workspace.Facts {
	f := workspace.Facts{Title: "Bot"}
	pid := d.bot.running()
	if pid == 0 {
		f.Lines = append(f.Lines, marked("process", "does not run", false))
		if last := d.bot.lastWords(); last != "" {
			f.Lines = append(f.Lines, fact("it said", last))
		}
		return f
	}
	conns := d.slack.Connections()
	f.Lines = append(f.Lines, fact("process", strconv.Itoa(pid)), marked("socket", plural(conns, "connection", "connections"), conns == 1))
	state, alive, err := d.app.registry.BotRunning()
	switch {
	case err == nil && alive && state.PID == pid:
		f.Lines = append(f.Lines, fact("threads", strconv.Itoa(state.Bound)+" bound"))
		if state.Problem != "" {
			f.Lines = append(f.Lines, marked("problem", state.Problem, false))
		}
	case err != nil:
		f.Lines = append(f.Lines, fact("lock", about(err)))
	}
	return f
}

func (d *liveDemo) controls() []workspace.Control {
	life := workspace.Control{ID: controlBot, Label: "Kill the bot", What: "Its process is killed, without a warning. Replies wait in Slack."}
	if d.bot.running() == 0 {
		life = workspace.Control{ID: controlBot, Label: "Start the bot", What: "It starts again, and reads what was written while it was away."}
	}
	return []workspace.Control{
		{ID: controlDrop, Label: "Drop the connection", What: "The bot's socket is cut. It connects again, and reads what it missed."},
		{ID: controlNo, Label: "Slack says no", What: fmt.Sprintf("The next %d calls of the bot are answered with an error.", slackSaysNo)},
		{ID: controlTwice, Label: "Say it twice", What: fmt.Sprintf("The bot is told of the next %d messages twice, as Slack does at times.", slackTwice)},
		{ID: controlAgent, Label: "Kill the agent", What: "The agent's process is killed. Its thread is told, and Start resumes its conversation."},
		life,
		{ID: controlRotate, Label: "Rotate the key", What: "The credentials file gets another key. A running agent still holds the old one."},
	}
}

// Play implements [workspace.Backstage].
func (d *liveDemo) Play(ctx context.Context, control, channel, thread string) (string, error) {
	switch control {
	case controlDrop:
		d.slack.Faults().Drop()
		return "The connection was cut.", nil
	case controlNo:
		d.slack.Faults().API("*", slackSaysNo, workspace.Error("internal_error"))
		return fmt.Sprintf("The next %d calls of the bot fail.", slackSaysNo), nil
	case controlTwice:
		d.slack.Faults().Deliver("message.channels", slackTwice, workspace.DuplicateNewEnvelope)
		return fmt.Sprintf("The bot hears of the next %d messages twice.", slackTwice), nil
	case controlAgent:
		return d.killAgent(ctx, channel, thread)
	case controlBot:
		return d.killBot(ctx)
	case controlRotate:
		if err := d.rotate(); err != nil {
			return "", err
		}
		return demoVariable + " has another value now.", nil
	}
	return "", fmt.Errorf("there is no control %q", control)
}

func (d *liveDemo) killAgent(ctx context.Context, channel, thread string) (string, error) {
	binding, bound := d.binding(channel, thread)
	if !bound {
		return "", errors.New("open the thread of a session first")
	}
	pid := d.agentPID(ctx, binding.ID)
	if pid <= 1 {
		return "", errors.New("its agent does not run")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return "", fmt.Errorf("kill process %d: %w", pid, err)
	}
	return fmt.Sprintf("The agent, process %d, was killed.", pid), nil
}

func (d *liveDemo) killBot(ctx context.Context) (string, error) {
	if pid := d.bot.running(); pid != 0 {
		return fmt.Sprintf("The bot, process %d, was killed. What is written now waits.", pid), d.bot.end(ctx, syscall.SIGKILL)
	}
	return "The bot starts.", d.bot.start()
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func moment(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.Local().Format("15:04:05")
}

func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}
