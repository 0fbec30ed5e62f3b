package smallagent

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// escapeTimeout is how long an ESC waits for the rest of a sequence before it is the Escape key.
const escapeTimeout = 100 * time.Millisecond

// maxLogParagraphs is how many paragraphs the view keeps.
const maxLogParagraphs = 300

// alarm is a timer that is not always set; its zero value never rings.
type alarm struct {
	timer *time.Timer
	C     <-chan time.Time
}

func (a *alarm) set(d time.Duration) {
	a.stop()
	a.timer = time.NewTimer(d)
	a.C = a.timer.C
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
	}
	a.C = nil
}

// message is something that was submitted.
type message struct {
	kind, text, how string
}

// agent is the state of the program. Its fields belong to the goroutine that runs it.
type agent struct {
	opts    options
	conv    *conversation
	term    *terminal
	chunks  <-chan chunk
	signals <-chan os.Signal

	decoder      decoder
	box          box
	pastedAt     time.Time
	chordPending bool // C-x was the last key
	breakWarned  bool // C-c was the last key
	lostEnters   int  // Enters lost to --lose-enters

	startedAt  time.Time
	starting   bool
	turn       *message
	dialog     *dialog
	queue      []message
	paragraphs []paragraph
	children   *childProcesses
	hook       *hook // it may answer the dialog

	startAlarm, turnAlarm, escapeAlarm alarm

	ended     bool
	status    int
	endReason string
}

// run begins, goes from event to event, and records the end.
func (a *agent) run(ctx context.Context) (int, error) {
	if err := a.start(); err != nil {
		return StatusFailed, err
	}
	defer a.startAlarm.stop()
	defer a.turnAlarm.stop()
	defer a.escapeAlarm.stop()
	for !a.ended {
		a.draw()
		a.handleNext(ctx)
	}
	a.hook.end()
	if a.status == StatusOK {
		a.children.end()
	} else {
		a.children.release()
	}
	return a.status, a.conv.add(Entry{Type: TypeEnd, Text: a.endReason, Status: a.status})
}

func (a *agent) start() error {
	a.showHistory()
	how := HowNew
	if a.opts.resume != "" {
		how = HowResume
		a.show("note", fmt.Sprintf("resumed, %s so far", plural(a.conv.turns, "turn")))
	}
	if err := a.conv.add(Entry{Type: TypeStart, How: how, Pid: os.Getpid()}); err != nil {
		return err
	}
	if err := a.startChildren(); err != nil {
		return err
	}
	a.startedAt = time.Now().Add(a.opts.startDelay)
	if a.starting = a.opts.startDelay > 0; a.starting {
		a.startAlarm.set(a.opts.startDelay)
	}
	if a.opts.prompt != "" {
		a.submit(a.opts.prompt, HowPrompt)
	}
	return nil
}

func (a *agent) startChildren() (err error) {
	if !a.opts.fork {
		return nil
	}
	if a.children, err = startChildProcesses(a.opts.ignoreTerm); err != nil {
		return err
	}
	return a.conv.add(Entry{Type: TypeFork, Pids: a.children.pids})
}

// showHistory shows what the record holds.
func (a *agent) showHistory() {
	for _, e := range a.conv.entries {
		switch e.Type {
		case TypeUser, TypeShell, TypeCommand:
			a.show("you", e.Text)
		case TypeAgent:
			a.show("agent", e.Text)
		}
	}
	a.conv.entries = nil
}

func (a *agent) show(who, text string) {
	a.paragraphs = append(a.paragraphs, paragraph{who, text})
	if len(a.paragraphs) > 2*maxLogParagraphs {
		a.paragraphs = append([]paragraph(nil), a.paragraphs[maxLogParagraphs:]...)
	}
}

func (a *agent) draw() {
	p := screenContent{paragraphs: a.paragraphs, hint: a.hintText(), box: &a.box, dialog: a.dialog, state: a.state(), id: a.conv.id}
	p.columns, p.rows = a.term.size()
	a.term.draw(p.frame())
}

func (a *agent) state() State {
	switch {
	case a.starting:
		return StateStarting
	case a.dialog != nil:
		return StateAsking
	case a.turn != nil:
		return StateWorking
	}
	return StateReady
}

func (a *agent) hintText() string {
	switch {
	case a.breakWarned:
		return "C-c again ends the agent"
	case len(a.queue) > 0 && a.turn != nil:
		return plural(len(a.queue), "message") + " waiting for this turn to end"
	case a.turn != nil && a.dialog == nil:
		return "working; Escape interrupts"
	}
	return ""
}

func (a *agent) handleNext(ctx context.Context) {
	select {
	case <-ctx.Done():
		a.end("the caller ended it", 128+int(unix.SIGTERM))
	case s := <-a.signals:
		a.handleSignal(s)
	case c, ok := <-a.chunks:
		a.handleInput(c, ok)
	case <-a.startAlarm.C:
		a.starting = false
		a.startNext()
	case <-a.turnAlarm.C:
		a.turnAlarm.stop()
		a.finishTurn()
	case <-a.escapeAlarm.C:
		a.escapeAlarm.stop()
		a.handleEscapeTimeout()
	case said := <-a.hookDecisions():
		a.handleHookDecision(said)
	}
}

func (a *agent) end(why string, status int) {
	a.ended, a.endReason, a.status = true, why, status
}

func (a *agent) handleSignal(s os.Signal) {
	switch s {
	case unix.SIGWINCH:
		a.term.drawn = nil
	case unix.SIGCHLD:
		a.children.reap()
	case unix.SIGHUP:
		a.handleHangup()
	case unix.SIGTERM:
		if !a.opts.ignoreTerm {
			a.end("terminated", 128+int(unix.SIGTERM))
		}
	case unix.SIGINT:
		a.end("interrupted", 128+int(unix.SIGINT))
	}
}

func (a *agent) handleHangup() {
	if !a.opts.ignoreHup {
		a.end("hung up", 128+int(unix.SIGHUP))
	}
}

func (a *agent) handleInput(c chunk, ok bool) {
	if !ok {
		a.chunks = nil
		a.handleHangup()
		return
	}
	a.escapeAlarm.stop()
	a.handleEvents(a.decoder.feed(c.data), c.at)
	if a.decoder.isEscapePending() {
		a.escapeAlarm.set(escapeTimeout)
	}
}

// handleEscapeTimeout takes a waiting ESC for the key, unless its rest has come and only we are late.
func (a *agent) handleEscapeTimeout() {
	select {
	case c, ok := <-a.chunks:
		a.handleInput(c, ok)
	default:
		a.handleEvents(a.decoder.flush(), time.Now())
	}
}

func (a *agent) handleEvents(events []event, at time.Time) {
	for _, e := range events {
		if a.ended {
			return
		}
		a.handle(e, at)
	}
}

func (a *agent) handle(e event, at time.Time) {
	chord, warned := a.chordPending, a.breakWarned
	a.chordPending, a.breakWarned = e.key == keyChord, false
	switch {
	case e.key == keyRedraw:
		a.term.drawn = nil
	case a.dialog != nil:
		a.handleDialogKey(e)
	case e.key == keyEnter, e.key == keySubmit && chord:
		a.handleEnter(at)
	case e.key == keyEscape:
		a.interrupt()
	case e.key == keyBreak:
		a.handleBreak(warned)
	case e.key == keyEOF:
		if a.box.empty() {
			a.end("its user ended it", StatusOK)
		}
	default:
		a.edit(e, at)
	}
}

func (a *agent) edit(e event, at time.Time) {
	if e.key == keyPaste {
		a.pastedAt = at
	}
	a.box.edit(e)
}

func (a *agent) handleBreak(warned bool) {
	if warned {
		a.end("its user ended it", StatusOK)
		return
	}
	a.breakWarned = true
	if a.turn != nil {
		a.interrupt()
		return
	}
	a.box.clear()
}

func (a *agent) handleEnter(at time.Time) {
	text := a.box.text()
	if strings.TrimSpace(text) == "" || a.isEnterLost(at) {
		return
	}
	if a.submit(text, a.box.inputMethod()) {
		a.box.clear()
	}
}

func (a *agent) isEnterLost(at time.Time) bool {
	if at.Before(a.startedAt) || at.Sub(a.pastedAt) < a.opts.enterGap {
		return true
	}
	if a.lostEnters < a.opts.loseEnters {
		a.lostEnters++
		return true
	}
	return false
}

// submit records a text before anything else is done with it. What cannot be recorded is not taken.
func (a *agent) submit(text, how string) bool {
	m := message{entryType(text), text, how}
	if !a.appendEntry(Entry{Type: m.kind, Text: text, How: how}) {
		return false
	}
	a.queue = append(a.queue, m)
	a.startNext()
	return true
}

func (a *agent) appendEntry(e Entry) bool {
	if err := a.conv.add(e); err != nil {
		a.show("note", err.Error())
		return false
	}
	return true
}

func entryType(text string) string {
	switch bare := strings.TrimSpace(text); {
	case strings.HasPrefix(text, "!"):
		return TypeShell
	case strings.HasPrefix(bare, "/"), bare == "exit", bare == "quit":
		return TypeCommand
	}
	return TypeUser
}

// startNext runs what is queued until a turn begins.
func (a *agent) startNext() {
	for !a.ended && !a.starting && a.turn == nil && len(a.queue) > 0 {
		m := a.queue[0]
		a.queue = a.queue[1:]
		a.show("you", m.text)
		switch m.kind {
		case TypeShell:
			a.show("note", "a command for the shell; this agent runs none")
		case TypeCommand:
			a.runCommand(strings.TrimSpace(m.text))
		default:
			a.startTurn(m)
		}
	}
}

func (a *agent) runCommand(text string) {
	switch text {
	case "exit", "quit":
		a.end("its user ended it", StatusOK)
	case "/clear":
		a.clearConversation()
	case "/help":
		a.show("note", help)
	default:
		a.show("note", "unknown command; /help says which there are")
	}
}

const help = `Enter sends, C-j is a new line, Escape interrupts, C-c C-c or exit ends.
/clear begins a new conversation; !TEXT would be a shell command.
ask: TEXT asks for permission, choose: TEXT lets you choose, menu opens a menu, slow: 2s takes its time, say: TEXT is answered with TEXT.`

// clearConversation goes on in a new conversation with a new id, as some agents do when they are asked to forget.
func (a *agent) clearConversation() {
	c, err := createConversation(a.conv.dir, newID())
	if err != nil {
		a.show("note", err.Error())
		return
	}
	a.appendEntry(Entry{Type: TypeClear, Conversation: c.id})
	old := a.conv
	a.conv, a.paragraphs = c, nil
	a.appendEntry(Entry{Type: TypeStart, How: HowClear, Pid: os.Getpid(), Conversation: old.id})
	if err := old.close(); err != nil {
		a.show("note", err.Error())
	}
	a.show("note", "a new conversation; the one before is kept as "+old.id)
}

func (a *agent) startTurn(m message) {
	a.turn = &m
	if a.dialog = a.opts.dialogFor(m.text); a.dialog == nil {
		a.turnAlarm.set(a.opts.delayFor(m.text))
		return
	}
	a.startHook(a.dialog)
}

// dialogFor is the dialog that a message opens, or nil.
func (o *options) dialogFor(text string) *dialog {
	if strings.TrimSpace(text) == "menu" {
		return &dialog{title: "Menu", choices: []string{"Go on", "Go on, but carefully"}, isMenu: true}
	}
	line, _, _ := strings.Cut(text, "\n")
	if what, ok := strings.CutPrefix(line, "ask:"); ok {
		return permissionDialog(strings.TrimSpace(what))
	}
	if what, ok := strings.CutPrefix(line, "choose:"); ok {
		return choiceDialog(strings.TrimSpace(what))
	}
	if what, ok := strings.CutPrefix(text, "plan:"); ok {
		d := permissionDialog("the plan")
		d.plan = strings.TrimSpace(what)
		return d
	}
	for _, word := range o.ask {
		if strings.Contains(text, word) {
			return permissionDialog(word)
		}
	}
	return nil
}

// choiceDialog is a question with options; where the text has none after "|", with two that a hook is not told.
func choiceDialog(text string) *dialog {
	what, rest, given := strings.Cut(text, "|")
	d := &dialog{title: strings.TrimSpace(what), choices: []string{"This", "That"}, subject: text, isChoice: true}
	if given {
		d.choices, d.hasOptions = nil, true
		for option := range strings.SplitSeq(rest, "|") {
			d.choices = append(d.choices, strings.TrimSpace(option))
		}
	}
	return d
}

func permissionDialog(what string) *dialog {
	return &dialog{title: "Allow " + what + "?", choices: []string{"Yes", "No"}, subject: what}
}

func (o *options) delayFor(text string) time.Duration {
	rest, ok := strings.CutPrefix(text, "slow:")
	if words := strings.Fields(rest); ok && len(words) > 0 {
		if d, err := time.ParseDuration(words[0]); err == nil {
			return d
		}
	}
	return o.replyDelay
}

func (a *agent) handleDialogKey(e event) {
	switch {
	case e.key == keyEnter:
		a.answerInTerminal(a.dialog.selected)
	case e.key == keyEscape, e.key == keyBreak:
		a.answerInTerminal(-1)
	case e.key == keyText && len(e.text) == 1 && e.text[0] >= '1' && int(e.text[0]-'1') < len(a.dialog.choices):
		a.answerInTerminal(int(e.text[0] - '1'))
	case e.key == keyUp:
		a.dialog.selected = 0
	case e.key == keyDown:
		a.dialog.selected = len(a.dialog.choices) - 1
	}
}

// answerInTerminal takes an answer that was given in the terminal, and lets the hook go.
func (a *agent) answerInTerminal(choice int) {
	if !a.opts.leaveHook {
		a.hook.end()
	}
	a.hook = nil
	a.closeDialog(choice, "", "")
}

// closeDialog ends the dialog and goes on with the turn.
func (a *agent) closeDialog(choice int, how, why string) {
	d := a.dialog
	decision := d.decision(choice)
	a.appendEntry(Entry{Type: TypeDialog, Text: d.title, Decision: decision, How: how, Reason: why})
	a.show("note", strings.TrimSpace(d.title+" "+decision+" "+why))
	a.dialog = nil
	a.turnAlarm.set(a.opts.replyDelay)
}

func (a *agent) interrupt() {
	if a.turn == nil {
		return
	}
	a.turn = nil
	a.turnAlarm.stop()
	a.appendEntry(Entry{Type: TypeInterrupt})
	a.show("agent", "interrupted")
	a.startNext()
}

// maxShownReply is how many characters of an answer the screen shows.
const maxShownReply = 400

func (a *agent) finishTurn() {
	text := a.turn.text
	a.turn = nil
	a.conv.turns++
	reply := fmt.Sprintf("Turn %d. You said (%s, %s): %s", a.conv.turns,
		plural(utf8.RuneCountInString(text), "character"), plural(strings.Count(text, "\n")+1, "line"), shorten(text, 60))
	if said, ok := strings.CutPrefix(text, "say:"); ok {
		reply = strings.TrimSpace(said)
	}
	a.appendEntry(Entry{Type: TypeAgent, Text: reply, Turn: a.conv.turns})
	a.show("agent", shorten(reply, maxShownReply))
	a.startNext()
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
