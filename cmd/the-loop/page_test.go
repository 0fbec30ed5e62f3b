package main

import (
	"strings"
	"testing"
)

const (
	acceptedSelector = `#thread-list [data-name=white_check_mark]`
	screenSelector   = `[data-role=screen]`
)

func TestOnlyRepliesOfListedUsersAreTypedOnThePage(t *testing.T) {
	d := startDemo(t)
	for _, want := range []string{"tmux -u -S", "attach-session", "http://127.0.0.1:", "1. Write “ask: run the tests”"} {
		if !strings.Contains(d.out, want) {
			t.Errorf("the demo does not say %q: %s", want, d.out)
		}
	}
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.waitForText(screenSelector, "small agent")
	b.sendText("thread", "Hello from the page")
	b.waitFor("the receipt", "!!document.querySelector('"+acceptedSelector+"')")
	b.waitForText(screenSelector, "Hello from the page")
	b.waitForText("#thread-list", "Turn 2. You said (19 characters")
	for _, name := range []string{"Bob", "Mallory"} {
		b.switchPersona(name)
		b.sendText("thread", "Nobody hears "+name)
		b.waitForText("#thread-list", "Nobody hears "+name)
	}
	b.waitForText(".facts", "2 replies") // dropped
	b.waitForText(".facts", "unauthorized-actor")
	b.switchPersona("Ann")
	b.sendText("thread", "And again")
	b.waitForText(screenSelector, "And again")
	if text := b.text(screenSelector); strings.Contains(text, "Nobody hears") {
		t.Errorf("somebody else got in:\n%s", text)
	}
	if n := b.count("#thread-list .reaction"); n != 2 && n != 1 { // the second may still be on its way
		t.Errorf("there are %d receipts", n)
	}
}
