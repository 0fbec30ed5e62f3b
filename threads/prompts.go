package threads

import (
	"fmt"
	"slices"
	"strings"

	"the-loop/threads/chat"
)

// prompts asks the operator what becomes of replies that are in doubt or too old.
type prompts struct {
	*threadState
	entries *entries
}

// prompt asks the operator about replies. The prompt is stored before it is posted.
func (ps *prompts) prompt(q ResendPrompt) {
	name := token(ps.sessionID)
	ps.b.ResendPrompts[name] = q
	ps.expirePrompts()
	ps.saveBestEffort()
	ps.svc.outbox.Add(ps.promptPost(name, q), false)
}

// promptPost is the message of a prompt, or of what was chosen.
func (ps *prompts) promptPost(name string, q ResendPrompt) chat.Post {
	p := ps.newPost(ps.promptText(q), name)
	if q.Choice == "" {
		send, skip := "Send again", "Skip"
		if q.Kind == ResendPromptOffer {
			send = "Send now"
		}
		p.Buttons = []chat.Button{{Label: send, Action: chat.ActionSend, Value: name, Style: "primary"}, {Label: skip, Action: chat.ActionSkip, Value: name}}
	}
	return p
}

func (ps *prompts) promptText(q ResendPrompt) string {
	text := fmt.Sprintf("I cannot tell whether %s reached the agent. Look at the agent, then choose.", ps.describeReplies(q.Replies))
	if q.Kind == ResendPromptOffer {
		text = fmt.Sprintf("I did not type %s: too much time has passed. Choose what to do.", ps.describeReplies(q.Replies))
	}
	if q.Choice != "" {
		text = strings.TrimSuffix(text, " Look at the agent, then choose.")
		text = strings.TrimSuffix(text, " Choose what to do.") + "\n" + choiceText(q)
	}
	return text + omittedText(q)
}

// describeReplies names replies by their number, their author and their time.
func (ps *prompts) describeReplies(replies []string) string {
	if len(replies) == 0 {
		return "a reply"
	}
	first := fmt.Sprintf("from %s", chat.DateText(replies[0]))
	if len(replies) == 1 {
		if user := ps.b.Replies[replies[0]].User; user != "" {
			return fmt.Sprintf("the reply of <@%s> %s", user, first)
		}
		return "the reply " + first
	}
	return fmt.Sprintf("%d replies %s to %s", len(replies), first, chat.DateText(replies[len(replies)-1]))
}

func choiceText(q ResendPrompt) string {
	did := "Skipped"
	switch q.Choice {
	case choiceLapsed:
		return "Nobody chose, and too many later questions are open: nothing was sent. What is still wanted has to be written again."
	case choiceWithdrawn:
		return "Deleted by its author: nothing is sent."
	case chat.ActionSend:
		did = "Sent"
	}
	return fmt.Sprintf("%s by <@%s> at %s.", did, q.By, chat.DateText(chat.TimeTS(q.At)))
}

// resend settles a prompt by a choice, once. It returns what is true for who chose, and the replies to be typec.
func (ps *prompts) resend(c ResendChoice) (answer string, again []string) {
	q, ok := ps.b.ResendPrompts[c.Token]
	switch {
	case ps.unbound || !ok:
		return "This question is no longer open.", nil
	case q.Choice != "" && q.By == "":
		return choiceText(q), nil
	case q.Choice != "":
		return "Already decided. " + choiceText(q), nil
	case c.Action != chat.ActionSend && c.Action != chat.ActionSkip:
		return "There is no such choice.", nil
	}
	q.Choice, q.By, q.At = c.Action, c.Actor.User, ps.svc.now()
	if c.TS != "" {
		q.TS = c.TS
	}
	ps.b.ResendPrompts[c.Token] = q
	again = ps.applyChoice(q)
	if err := ps.save(); err != nil {
		ps.svc.Log.Error("could not store a decision", "ref", ps.ref, "err", err)
	}
	ps.svc.outbox.Update(ps.promptPost(c.Token, q), q.TS)
	return choiceText(q), again
}

// applyChoice applies a choice to those replies of a prompt that are still open, and returns those to be typed.
func (ps *prompts) applyChoice(q ResendPrompt) (again []string) {
	for _, ts := range q.Replies {
		e := ps.b.Replies[ts]
		if e.State != StateDoubt && e.State != StateOffered {
			continue
		}
		e.At = q.At
		if q.Choice == chat.ActionSkip {
			e.State, e.Outcome, e.Wanted = StateSettled, OutcomeSkipped, ""
		} else {
			e.State, e.Wanted, e.Approved = StateApproved, MarkReceived, true
			again = append(again, ts)
		}
		ps.entries.setEntry(ts, e)
	}
	return again
}

// The choices of prompts that nobody decided.
const (
	choiceLapsed    = "lapsed"    // too many later ones are open
	choiceWithdrawn = "withdrawn" // its reply was deleted
)

// expirePrompts settles the oldest prompts where too many replies are in open ones, and forgets the oldest of the decided ones.
func (ps *prompts) expirePrompts() {
	open, decided := ps.listPrompts()
	n := 0
	for _, name := range open {
		n += len(ps.b.ResendPrompts[name].Replies)
	}
	for ; n > maxOpenReplies && len(open) > 1; open = open[1:] {
		q := ps.b.ResendPrompts[open[0]]
		n -= len(q.Replies)
		for _, ts := range q.Replies {
			if e := ps.b.Replies[ts]; e.State == StateDoubt || e.State == StateOffered {
				ps.entries.skip(ts)
			}
		}
		ps.closePrompt(open[0], choiceLapsed)
	}
	for _, name := range decided[:max(0, len(decided)-maxDecidedPrompts)] {
		delete(ps.b.ResendPrompts, name)
	}
}

// listPrompts are the names of the open and of the decided prompts, each the oldest first.
func (ps *prompts) listPrompts() (open, decided []string) {
	for name, q := range ps.b.ResendPrompts {
		if q.Choice == "" {
			open = append(open, name)
		} else {
			decided = append(decided, name)
		}
	}
	slices.SortFunc(open, func(a, b string) int {
		return chat.CompareTS(ps.b.ResendPrompts[a].FirstReply(), ps.b.ResendPrompts[b].FirstReply())
	})
	slices.SortFunc(decided, func(a, b string) int { return ps.b.ResendPrompts[a].At.Compare(ps.b.ResendPrompts[b].At) })
	return open, decided
}

// closePrompt settles a prompt that nobody decided, and edits its message.
func (ps *prompts) closePrompt(name, choice string) {
	q := ps.b.ResendPrompts[name]
	q.Choice, q.At = choice, ps.svc.now()
	ps.b.ResendPrompts[name] = q
	ps.svc.outbox.Update(ps.promptPost(name, q), q.TS)
}

// closeEmptyPrompts settles the prompts about a reply that was deleted, where they are about no other open one.
func (ps *prompts) closeEmptyPrompts(ts string) {
	for name, q := range ps.b.ResendPrompts {
		if q.Choice != "" || !slices.Contains(q.Replies, ts) {
			continue
		}
		if !slices.ContainsFunc(q.Replies, func(ts string) bool {
			s := ps.b.Replies[ts].State
			return s == StateDoubt || s == StateOffered
		}) {
			ps.closePrompt(name, choiceWithdrawn)
			ps.saveBestEffort()
		}
	}
}

// omittedText says how many replies an offer leaves out.
func omittedText(q ResendPrompt) string {
	if q.Omitted == 0 {
		return ""
	}
	return fmt.Sprintf("\n%d more from before were not typed either, and are too many to be kept: what is still wanted has to be written again.", q.Omitted)
}

// onPosted stores where the message of a prompt is.
func (ps *prompts) onPosted(nonce, ts string) {
	if q, ok := ps.b.ResendPrompts[nonce]; ok && q.TS == "" {
		q.TS = ts
		ps.b.ResendPrompts[nonce] = q
		ps.saveBestEffort()
	}
}

// repostOpen queues the open prompts of an earlier run that may not have been posted.
func (ps *prompts) repostOpen() {
	for token, q := range ps.b.ResendPrompts {
		if q.Choice == "" && q.TS == "" {
			ps.svc.outbox.Add(ps.promptPost(token, q), true)
		}
	}
}
