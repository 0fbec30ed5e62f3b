package threads

import (
	"fmt"
	"slices"
	"strings"

	"the-loop/threads/binding"
	"the-loop/threads/chat"
)

// prompts asks the operator what becomes of replies that are in doubt or too old.
type prompts struct {
	*threadState
	entries *entries
}

// prompt asks the operator about replies. The prompt is stored before it is posted.
func (ps *prompts) prompt(q binding.ResendPrompt) {
	name := token(ps.SessionID)
	ps.B.ResendPrompts[name] = q
	ps.expirePrompts()
	ps.SaveBestEffort()
	ps.svc.outbox.Add(ps.promptPost(name, q), false)
}

// promptPost is the message of a prompt, or of what was chosen.
func (ps *prompts) promptPost(name string, q binding.ResendPrompt) chat.Post {
	p := ps.NewPost(ps.promptText(q), name)
	if q.Choice == "" {
		send, skip := "Send again", "Skip"
		if q.Kind == binding.ResendPromptOffer {
			send = "Send now"
		}
		p.Buttons = []chat.Button{{Label: send, Action: chat.ActionSend, Value: name, Style: "primary"}, {Label: skip, Action: chat.ActionSkip, Value: name}}
	}
	return p
}

func (ps *prompts) promptText(q binding.ResendPrompt) string {
	text := fmt.Sprintf("I cannot tell whether %s reached the agent. Look at the agent, then choose.", ps.describeReplies(q.Replies))
	if q.Kind == binding.ResendPromptOffer {
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
		if user := ps.B.Replies[replies[0]].User; user != "" {
			return fmt.Sprintf("the reply of <@%s> %s", user, first)
		}
		return "the reply " + first
	}
	return fmt.Sprintf("%d replies %s to %s", len(replies), first, chat.DateText(replies[len(replies)-1]))
}

func choiceText(q binding.ResendPrompt) string {
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

// resend settles a prompt by a choice, once. It returns what is true for who chose, and the replies to be typed.
func (ps *prompts) resend(c ResendChoice) (answer string, again []string) {
	q, ok := ps.B.ResendPrompts[c.Token]
	switch {
	case ps.Unbound || !ok:
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
	ps.B.ResendPrompts[c.Token] = q
	again = ps.applyChoice(q)
	if err := ps.Save(); err != nil {
		ps.svc.Log.Error("could not store a decision", "ref", ps.Ref, "err", err)
	}
	ps.svc.outbox.Update(ps.promptPost(c.Token, q), q.TS)
	return choiceText(q), again
}

// applyChoice applies a choice to those replies of a prompt that are still open, and returns those to be typed.
func (ps *prompts) applyChoice(q binding.ResendPrompt) (again []string) {
	for _, ts := range q.Replies {
		e := ps.B.Replies[ts]
		if e.State != binding.StateDoubt && e.State != binding.StateOffered {
			continue
		}
		e.At = q.At
		if q.Choice == chat.ActionSkip {
			e.State, e.Outcome, e.Wanted = binding.StateSettled, binding.OutcomeSkipped, ""
		} else {
			e.State, e.Wanted, e.Approved = binding.StateApproved, binding.MarkReceived, true
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
		n += len(ps.B.ResendPrompts[name].Replies)
	}
	for ; n > maxOpenReplies && len(open) > 1; open = open[1:] {
		q := ps.B.ResendPrompts[open[0]]
		n -= len(q.Replies)
		for _, ts := range q.Replies {
			if e := ps.B.Replies[ts]; e.State == binding.StateDoubt || e.State == binding.StateOffered {
				ps.entries.skip(ts)
			}
		}
		ps.closePrompt(open[0], choiceLapsed)
	}
	for _, name := range decided[:max(0, len(decided)-maxDecidedPrompts)] {
		delete(ps.B.ResendPrompts, name)
	}
}

// listPrompts are the names of the open and of the decided prompts, each the oldest first.
func (ps *prompts) listPrompts() (open, decided []string) {
	for name, q := range ps.B.ResendPrompts {
		if q.Choice == "" {
			open = append(open, name)
		} else {
			decided = append(decided, name)
		}
	}
	slices.SortFunc(open, func(a, b string) int {
		return chat.CompareTS(ps.B.ResendPrompts[a].FirstReply(), ps.B.ResendPrompts[b].FirstReply())
	})
	slices.SortFunc(decided, func(a, b string) int { return ps.B.ResendPrompts[a].At.Compare(ps.B.ResendPrompts[b].At) })
	return open, decided
}

// closePrompt settles a prompt that nobody decided, and edits its message.
func (ps *prompts) closePrompt(name, choice string) {
	q := ps.B.ResendPrompts[name]
	q.Choice, q.At = choice, ps.svc.now()
	ps.B.ResendPrompts[name] = q
	ps.svc.outbox.Update(ps.promptPost(name, q), q.TS)
}

// closeEmptyPrompts settles the prompts about a reply that was deleted, where they are about no other open one.
func (ps *prompts) closeEmptyPrompts(ts string) {
	for name, q := range ps.B.ResendPrompts {
		if q.Choice != "" || !slices.Contains(q.Replies, ts) {
			continue
		}
		if !slices.ContainsFunc(q.Replies, func(ts string) bool {
			s := ps.B.Replies[ts].State
			return s == binding.StateDoubt || s == binding.StateOffered
		}) {
			ps.closePrompt(name, choiceWithdrawn)
			ps.SaveBestEffort()
		}
	}
}

// omittedText says how many replies an offer leaves out.
func omittedText(q binding.ResendPrompt) string {
	if q.Omitted == 0 {
		return ""
	}
	return fmt.Sprintf("\n%d more from before were not typed either, and are too many to be kept: what is still wanted has to be written again.", q.Omitted)
}

// onPosted stores where the message of a prompt is.
func (ps *prompts) onPosted(nonce, ts string) {
	if q, ok := ps.B.ResendPrompts[nonce]; ok && q.TS == "" {
		q.TS = ts
		ps.B.ResendPrompts[nonce] = q
		ps.SaveBestEffort()
	}
}

// repostOpen queues the open prompts of an earlier run that may not have been posted.
func (ps *prompts) repostOpen() {
	for token, q := range ps.B.ResendPrompts {
		if q.Choice == "" && q.TS == "" {
			ps.svc.outbox.Add(ps.promptPost(token, q), true)
		}
	}
}
