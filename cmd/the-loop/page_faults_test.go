package main

import (
	"fmt"
	"strings"
	"testing"
)

// receipts waits until so many replies have been accepted.
func (b *browser) receipts(n int) {
	b.t.Helper()
	b.until(fmt.Sprintf("%d accepted replies", n), fmt.Sprintf("document.querySelectorAll('%s').length === %d", accepted, n))
}

// typedOnce fails unless each text was typed into the agent once: the small agent answers every text with a turn.
func (b *browser) typedOnce(texts ...string) {
	b.t.Helper()
	list := b.text("#thread-list")
	for _, text := range texts {
		if n := strings.Count(list, fmt.Sprintf("characters, 1 line): %s", text)); n != 1 {
			b.t.Errorf("%q was answered %d times:\n%s", text, n, list)
		}
	}
}

func TestTheProductCopesWithWhatThePageMakesGoWrong(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.click("#wire-switch")
	b.write("thread", "before")
	b.receipts(1)
	b.until("frames pass", "document.querySelectorAll('.frames li').length > 3 && document.querySelector('.frames').innerText.includes('chat.postMessage')")

	b.click("[data-control=drop]")
	b.shows(".said", "cut")
	b.write("thread", "while it was cut")
	b.receipts(2)

	b.click("[data-control=no]")
	b.shows(".said", "fail")
	b.write("thread", "when Slack said no")
	b.receipts(3)

	b.click("[data-control=twice]")
	b.shows(".said", "twice")
	b.write("thread", "heard twice")
	b.receipts(4)

	b.click("[data-control=bot]")
	b.shows(".said", "was killed")
	b.shows(".facts", "does not run")
	b.write("thread", "while the bot was dead")
	b.press(".controls", "Start the bot")
	b.receipts(5)
	b.shows("#thread-list", "Turn 6")
	b.typedOnce("before", "while it was cut", "when Slack said no", "heard twice", "while the bot was dead")

	b.click("[data-control=agent]")
	b.shows("#thread-list", "helper is down")
	b.press(announcement, "Start")
	b.shows(announcement, "helper is running")
	b.write("thread", "after the agent was killed")
	b.receipts(6)
	b.shows("#thread-list", "Turn 7") // the conversation goes on
}

func TestRestartingAllAfterARotationIsSeenOnThePage(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.write("thread", "before the rotation")
	b.receipts(1)
	b.click("[data-control=rotate]")
	b.shows(".facts", demoVariable)
	b.shows("#channel-list", "sessions 1 of 1 running with a stale environment")
	b.write("channel", "/the-loop status")
	b.shows("#channel-list article:last-child", "1 of 1 running with a stale environment")
	b.press("#channel-list", "Restart all")
	b.shows("#channel-list", "No session runs on a stale environment any more")
	b.shows(".facts", "holds what is declared")
	b.until("the button is gone", "![...document.querySelectorAll('#channel-list button')].some(e => e.innerText === 'Restart all')")
	b.write("thread", "after the rotation")
	b.receipts(2)
	b.shows("#thread-list", "Turn 3") // the conversation goes on
	b.write("channel", "/the-loop status")
	b.until("status says nothing of it any more", "(t => t.includes('Connected for') && !t.includes('stale'))(document.querySelector('#channel-list article:last-child').innerText)")
}
