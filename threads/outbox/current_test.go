package outbox

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"the-loop/threads/chat"
)

// env is a chat service with one channel, and the stored state of one message.
type env struct {
	posts   map[string]chat.Post // by ts
	stored  State
	fail    func(step string) error // may fail a step, before or after it is done
	updates int
}

func (e *env) step(name string) error {
	if e.fail == nil {
		return nil
	}
	return e.fail(name)
}

func (e *env) Post(_ context.Context, p chat.Post) (string, error) {
	if err := e.step("post"); err != nil {
		return "", err
	}
	ts := fmt.Sprintf("%d.0", len(e.posts)+1)
	e.posts[ts] = p
	return ts, e.step("posted")
}

func (e *env) Update(_ context.Context, ts string, p chat.Post) error {
	if err := e.step("update"); err != nil {
		return err
	}
	e.updates++
	e.posts[ts] = p
	return e.step("updated")
}

func (e *env) FindPost(_ context.Context, _, _, nonce string, _ time.Time) (string, error) {
	if err := e.step("find"); err != nil {
		return "", err
	}
	for ts, p := range e.posts {
		if p.Nonce == nonce {
			return ts, nil
		}
	}
	return "", nil
}

// current is the message as a program finds it that starts now.
func (e *env) current(text string) *Current {
	return &Current{Chat: e, Post: chat.Post{Channel: "C1", Nonce: "n", Text: text}, State: e.stored, Store: func(_ context.Context, s State) error {
		if err := e.step("store"); err != nil {
			return err
		}
		e.stored = s
		return e.step("stored")
	}}
}

// bring posts the message and makes it show a text, as its owner does.
func (e *env) bring(text string) error {
	c := e.current(text)
	return errors.Join(c.Ensure(context.Background()), showIfThere(c))
}

func showIfThere(c *Current) error {
	if c.State.TS == "" {
		return nil
	}
	return c.Show(context.Background())
}

// Whatever step is interrupted, and however often, the next program posts the message once and makes it true.
func TestAMessageIsPostedOnceWhateverIsInterrupted(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"store", "stored", "post", "posted", "find", "update", "updated"} {
		for _, cause := range []error{chat.ErrOutcomeUnknown, errors.New("internal_error")} {
			if step == "posted" && !errors.Is(cause, chat.ErrOutcomeUnknown) {
				continue // the service never fails for certain after the message is there
			}
			for nth := range 5 {
				e := &env{posts: map[string]chat.Post{}}
				seen := 0
				e.fail = func(at string) error {
					if at == step {
						if seen++; seen == nth+1 {
							return cause
						}
					}
					return nil
				}
				for _, text := range []string{"one", "two", "three", "three"} {
					_ = e.bring(text) // interrupted perhaps: the next call continues
				}
				e.fail = nil
				if err := e.bring("three"); err != nil {
					t.Fatal(err)
				}
				if len(e.posts) != 1 || e.posts["1.0"].Text != "three" || e.stored.Shown != Fingerprint(chat.Post{Text: "three"}) {
					t.Errorf("%s %d, %v: %v, stored %+v", step, nth, cause, e.posts, e.stored)
				}
			}
		}
	}
}

func TestAMessageThatShowsItsPostIsNotEdited(t *testing.T) {
	t.Parallel()
	e := &env{posts: map[string]chat.Post{}}
	for range 3 {
		if err := e.bring("one"); err != nil {
			t.Fatal(err)
		}
	}
	if e.updates != 0 {
		t.Errorf("it was edited %d times", e.updates)
	}
}
