package threads

import (
	"context"
	"fmt"
	"strings"

	"the-loop/threads/chat"
)

// ask puts a question about replies to the operator. It is stored before it is posted.
func (t *thread) prompt(q ResendPrompt) {
	name := token(t.sessionID)
	t.b.ResendPrompts[name] = q
	t.expirePrompts()
	t.saveBestEffort()
	t.m.outbox.Add(t.promptPost(name, q), false)
}

// promptPost is the message that asks, or that says how it was answered.
func (t *thread) promptPost(name string, q ResendPrompt) chat.Post {
	p := t.newPost(t.promptText(q), name)
	if q.Choice == "" {
		send, skip := "Send again", "Skip"
		if q.Kind == ResendPromptOffer {
			send = "Send now"
		}
		p.Buttons = []chat.Button{{Label: send, Action: chat.ActionSend, Value: name, Style: "primary"}, {Label: skip, Action: chat.ActionSkip, Value: name}}
	}
	return p
}

func (t *thread) promptText(q ResendPrompt) string {
	text := fmt.Sprintf("I cannot tell whether %s reached the agent. Look at the agent, then choose.", t.describeReplies(q.Replies))
	if q.Kind == ResendPromptOffer {
		text = fmt.Sprintf("I did not type %s: too much time has passed. Choose what to do.", t.describeReplies(q.Replies))
	}
	if q.Choice != "" {
		text = strings.TrimSuffix(text, " Look at the agent, then choose.")
		text = strings.TrimSuffix(text, " Choose what to do.") + "\n" + choiceText(q)
	}
	return text + omittedText(q)
}

// describeReplies names replies by their number, their author and their time.
func (t *thread) describeReplies(replies []string) string {
	if len(replies) == 0 {
		return "a reply"
	}
	first := fmt.Sprintf("from %s", chat.DateText(replies[0]))
	if len(replies) == 1 {
		if user := t.b.Replies[replies[0]].User; user != "" {
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

// resend settles a question by a click, once, and returns what is true for the one who clicked.
func (t *thread) resend(ctx context.Context, d ResendChoice) string {
	q, ok := t.b.ResendPrompts[d.Token]
	switch {
	case t.unbound || !ok:
		return "This question is no longer open."
	case q.Choice != "" && q.By == "":
		return choiceText(q)
	case q.Choice != "":
		return "Already decided. " + choiceText(q)
	case d.Action != chat.ActionSend && d.Action != chat.ActionSkip:
		return "There is no such choice."
	}
	q.Choice, q.By, q.At = d.Action, d.Actor.User, t.m.now()
	if d.TS != "" {
		q.TS = d.TS
	}
	t.b.ResendPrompts[d.Token] = q
	again := t.applyChoice(q)
	if err := t.save(); err != nil {
		t.m.o.Log.Error("could not store a decision", "ref", t.ref, "err", err)
	}
	t.m.outbox.Update(t.promptPost(d.Token, q), q.TS)
	for _, ts := range again {
		t.requeueChosen(ts)
	}
	t.sendNext(ctx)
	return choiceText(q)
}

// applyChoice changes the replies that a question is about, as long as they are still open, and returns those to be typed.
func (t *thread) applyChoice(q ResendPrompt) (again []string) {
	for _, ts := range q.Replies {
		e := t.b.Replies[ts]
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
		t.setEntry(ts, e)
	}
	return again
}
