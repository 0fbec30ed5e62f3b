package tmux

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"the-loop/sessions"
)

// MaxDelay is the longest wait between paste and submit that [Tmux.Paste] takes.
const MaxDelay = time.Minute

const maxKeys = 4096 // bytes; they are few keys, not text

// Paste pastes d.Text and submits it, see [sessions.PaneWriter].
//
// Nothing was typed, for certain, after an error that is not [sessions.ErrInDoubt]: tmux refused, there was no server,
// the client could not start, or the server never asked the client for the text (a stopped server that goes on later
// drops such a client's command: measured). An answer that stays away once the text was taken leaves a doubt. The error
// is [sessions.ErrTerminalTimeout] too when there was no answer.
//
// Success says that the bytes are on the pane's terminal, not that the program has read them. A program that has not
// asked for bracketed paste gets the text plain with its line feeds: tmux does not tell before 3.7.
func (t *Tmux) Paste(ctx context.Context, d sessions.Paste) error {
	if err := checkPaste(d); err != nil {
		return err
	}
	commit := d.Commit
	return t.runGuarded(ctx, "deliver", d.Target, func(pane string) call {
		c := pasteCall(d, pane)
		c.commit, commit = commit, nil // once, also when the pane turns out to be another one
		return c
	})
}

// Press pastes the bytes of keys as they are, unbracketed. Errors as for [Tmux.Paste].
func (t *Tmux) Press(ctx context.Context, target sessions.Target, keys string) error {
	switch {
	case keys == "":
		return sessions.ErrEmptyText
	case len(keys) > maxKeys:
		return fmt.Errorf("tmux: %d bytes of keys: %w", len(keys), ErrTooLong)
	}
	return t.runGuarded(ctx, "press", target, func(pane string) call { return pressCall(target.Mark, pane, keys) })
}

func checkPaste(d sessions.Paste) error {
	switch {
	case d.Text == "":
		return sessions.ErrEmptyText
	case !utf8.ValidString(d.Text) || strings.ContainsFunc(d.Text, isForbidden):
		return fmt.Errorf("tmux: %w: it could leave the paste", ErrInvalidText)
	case len(d.Submit) > maxKeys, strings.Contains(d.Submit, "\x00"):
		return fmt.Errorf("tmux: %q is no submit key", d.Submit)
	case d.Delay < 0 || d.Delay > MaxDelay:
		return fmt.Errorf("tmux: a delay of %s before the submit key: at most %s", d.Delay, MaxDelay)
	}
	return nil
}

func isForbidden(r rune) bool { return (r < 0x20 || r >= 0x7f && r < 0xa0) && r != '\n' && r != '\t' }

// The answers of a guarded command. The second is followed by why.
const (
	answerDone    = "DONE"
	answerRefused = "REFUSED\t"
)

var markPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._-]{1,128}$`) }) // slow to compile

// markCondition is the guard that every command on a pane carries: only the pane that has the mark. Marks hold nothing that a
// format gives a meaning to.
func markCondition(mark string) string { return "#{==:#{" + markOption + "}," + mark + "}" }

// inputCondition is the guard of what types: a paste into a dead pane ends the server, one into a pane whose input is off is
// dropped without a word.
func inputCondition(mark string) string {
	return "#{&&:" + markCondition(mark) + ",#{&&:#{==:#{pane_dead},0},#{==:#{pane_input_off},0}}}"
}

// refusalCommand says, in place of what was asked, whether it was the pane's input that was off.
func refusalCommand(mark, pane string) string {
	return command("display-message", "-p", "-t", pane, answerRefused+"#{&&:"+markCondition(mark)+",#{pane_input_off}}")
}

// pasteCall is one invocation: load, guard, leave any mode (within one tmux pastes without brackets), paste, submit. Only
// load-buffer waits; what follows runs in one go, whether the client lives or not.
func pasteCall(d sessions.Paste, pane string) call {
	buffer := newBufferName()
	typed := sequence(
		command("copy-mode", "-q", "-t", pane),
		command("paste-buffer", "-p", "-r", "-d", "-b", buffer, "-t", pane),
		submitCommand(d, pane),
		command("display-message", "-p", answerDone))
	return loadBufferCall([]byte(d.Text), buffer, pane, inputCondition(d.Mark), typed, refusalCommand(d.Mark, pane))
}

func loadBufferCall(input []byte, buffer, pane, guard, then, otherwise string) call {
	otherwise = sequence(otherwise, command("delete-buffer", "-b", buffer))
	return call{input: input, args: []string{"load-buffer", "-b", buffer, "-", ";",
		"if-shell", "-F", "-t", pane, guard, then, otherwise}}
}

// submitCommand pastes the submit key from a buffer that exists for this alone. A later one is left with the server, which asks
// again whether the pane is ours.
func submitCommand(d sessions.Paste, pane string) string {
	if d.Submit == "" {
		return command("copy-mode", "-q", "-t", pane)
	}
	buffer := newBufferName()
	key := sequence(command("set-buffer", "-b", buffer, "--", d.Submit), pasteKeys(buffer, pane, d.Submit))
	if d.Delay == 0 {
		return key
	}
	later := command("if-shell", "-F", "-t", pane, inputCondition(d.Mark),
		sequence(command("copy-mode", "-q", "-t", pane), key))
	return command("run-shell", "-b", "-d", strconv.FormatFloat(d.Delay.Seconds(), 'f', 3, 64), "-C", later)
}

// pasteKeys pastes bytes as they are and deletes their buffer. tmux 3.7 needs -S to leave control bytes alone, which
// older ones do not know; the format came with it.
func pasteKeys(buffer, pane, keys string) string {
	old := command("paste-buffer", "-r", "-d", "-b", buffer, "-t", pane)
	if !strings.ContainsFunc(keys, func(r rune) bool { return isForbidden(r) && r != '\r' }) {
		return old
	}
	raw := command("paste-buffer", "-S", "-r", "-d", "-b", buffer, "-t", pane)
	return command("if-shell", "-F", "-t", pane, "#{!=:#{bracket_paste_flag},}", raw, old)
}

func pressCall(mark, pane, keys string) call {
	buffer := newBufferName()
	typed := sequence(command("copy-mode", "-q", "-t", pane), pasteKeys(buffer, pane, keys),
		command("display-message", "-p", answerDone))
	return loadBufferCall([]byte(keys), buffer, pane, inputCondition(mark), typed, refusalCommand(mark, pane))
}

// runGuarded types into the target's pane. When tmux refuses, the pane is looked for by its mark, and tried once more if it
// is another one than was thought.
func (t *Tmux) runGuarded(ctx context.Context, what string, target sessions.Target, build func(pane string) call) error {
	if !markPattern().MatchString(target.Mark) {
		return fmt.Errorf("tmux: %q is no mark of a pane", target.Mark)
	}
	var first error
	if isID(target.Pane, '%') {
		if first = t.attempt(ctx, build(target.Pane)); !shouldFindPane(first) {
			return wrapTargetError(what, target, first)
		}
	}
	pane, err := t.findLivePane(ctx, target.Mark)
	switch {
	case err != nil:
		return wrapTargetError(what, target, err)
	case pane.ID == target.Pane && errors.Is(first, ErrInputOff):
		return wrapTargetError(what, target, first)
	}
	target.Pane = pane.ID
	if err = t.attempt(ctx, build(pane.ID)); errors.Is(err, errRefused) {
		err = fmt.Errorf("%w: it changed while we looked", sessions.ErrPaneGone)
	}
	return wrapTargetError(what, target, err)
}

// shouldFindPane reports an error after which nothing was typed and the pane may be another one.
func shouldFindPane(err error) bool {
	return errors.Is(err, errRefused) || errors.Is(err, ErrInputOff) || errors.Is(err, errNoServer) || errors.Is(err, errNoSocket)
}

func wrapTargetError(what string, target sessions.Target, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s to pane %s of %s: %w", what, target.Pane, target.Mark, err)
}

// attempt makes one attempt.
func (t *Tmux) attempt(ctx context.Context, c call) error {
	out, err := t.run(ctx, c)
	reason, refused := strings.CutPrefix(out, answerRefused)
	switch {
	case strings.HasPrefix(out, answerDone):
		return nil // even if the client was ended a moment later
	case refused && strings.TrimSpace(reason) == "1":
		return ErrInputOff
	case refused:
		return errRefused
	case err == nil:
		err = &callError{verb: c.args[0], message: fmt.Sprintf("unexpected answer %q", out)}
	}
	return wrapInDoubt(err)
}
