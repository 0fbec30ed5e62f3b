package threads

import (
	"context"
	"time"

	"the-loop/authz"
	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// commands runs replies that speak to the bot, and not to the agent.
type commands struct {
	*threadState
	entries *entries
}

// handleCommand runs a command at once, whatever waits. It is settled before, so it never runs twice. Nobody is answered whom the
// list does not have.
func (c *commands) handleCommand(ctx context.Context, r chat.Reply, live bool) {
	old := !live && c.svc.now().Sub(chat.TSTime(r.TS)) > commandAge
	switch {
	case old && !c.canAcknowledge(r.Actor):
		c.entries.settle(r.TS, binding.OutcomeCommand, "")
		c.entries.dropSuspended(ctx, r)
		return
	case old:
		c.entries.settleWithNotification(r.TS, binding.OutcomeSkipped, "", "I was away when this command came, and did not run it. Give it again if it is still wanted.")
		return
	}
	c.entries.settle(r.TS, binding.OutcomeCommand, "")
	c.svc.Start(func(ctx context.Context) { c.runCommand(ctx, r) })
}

// commandFailed says that a command could not be read.
func (c *commands) commandFailed(ctx context.Context, r chat.Reply, err error) {
	if !c.canAcknowledge(r.Actor) {
		c.entries.dropSuspended(ctx, r)
		return
	}
	c.post("I could not run this command: " + chat.Escape(err.Error()))
}

// commandAge is how old a command may be that was found by reading the thread.
const commandAge = time.Minute

func (c *commands) runCommand(ctx context.Context, r chat.Reply) {
	loading, cancel := context.WithTimeout(ctx, loadTimeout)
	defer cancel()
	content, err := r.Load(loading)
	if err != nil {
		c.Do(func(ctx context.Context) { c.commandFailed(ctx, r, err) })
		return
	}
	switch verdict, reason := c.svc.Policy().Authorize(content.Actor); verdict {
	case authz.Denied:
		c.Do(func(ctx context.Context) { c.entries.deny(ctx, r, reason) })
		return
	case authz.Suspended:
		c.Do(func(context.Context) { c.post(suspendedText) })
		return
	case authz.SuspendedUnlisted:
		c.Do(func(ctx context.Context) { c.entries.dropSuspended(ctx, r) })
		return
	}
	c.Do(func(ctx context.Context) { c.entries.emitReceived(ctx, r) })
	answer := c.svc.Commander.Command(ctx, CommandRequest{ID: c.SessionID, Ref: c.Ref, Channel: r.Channel, Root: r.Root,
		User: content.Actor.User, Command: *r.Command})
	if answer != "" {
		c.Do(func(context.Context) { c.post(answer) })
	}
}
