package main

import (
	"strings"
	"testing"
)

const (
	accepted = `#thread-list [data-name=white_check_mark]`
	screen   = `[data-role=screen]`
)

func TestAReplyOnThePageIsTypedAndOthersGetNowhere(t *testing.T) {
	d := startDemo(t)
	for _, want := range []string{"tmux -u -S", "attach-session", "http://127.0.0.1:", "1. Write “ask: run the tests”"} {
		if !strings.Contains(d.out, want) {
			t.Errorf("the demo does not say %q: %s", want, d.out)
		}
	}
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.shows(screen, "small agent")
	b.write("thread", "Hello from the page")
	b.until("the receipt", "!!document.querySelector('"+accepted+"')")
	b.shows(screen, "Hello from the page")
	b.shows("#thread-list", "Turn 2. You said (19 characters")
	for _, name := range []string{"Bob", "Mallory"} {
		b.as(name)
		b.write("thread", "Nobody hears "+name)
		b.shows("#thread-list", "Nobody hears "+name)
	}
	b.shows(".facts", "2 replies") // dropped
	b.shows(".facts", "unauthorized-actor")
	b.as("Ann")
	b.write("thread", "And again")
	b.shows(screen, "And again")
	if text := b.text(screen); strings.Contains(text, "Nobody hears") {
		t.Errorf("somebody else got in:\n%s", text)
	}
	if n := b.count("#thread-list .reaction"); n != 2 && n != 1 { // the second may still be on its way
		t.Errorf("there are %d receipts", n)
	}
}
