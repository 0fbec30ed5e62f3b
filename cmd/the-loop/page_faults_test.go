package main

import (
	"fmt"
	"strings"
	"testing"

	"the-loop/cmd/internal/demo"
)

// waitForReceipts waits until so many replies have been accepted.
func (b *browser) waitForReceipts(n int) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf("%d accepted replies", n), fmt.Sprintf("document.querySelectorAll('%s').length === %d", acceptedSelector, n))
}

// assertTypedOnce fails unless each text was typed into the agent once: the small agent answers every text with a turn.
func (b *browser) assertTypedOnce(texts ...string) {
	b.t.Helper()
	list := b.text("#thread-list")
	for _, text := range texts {
		if n := strings.Count(list, fmt.Sprintf("characters, 1 line): %s", text)); n != 1 {
			b.t.Errorf("%q was answered %d times:\n%s", text, n, list)
		}
	}
}

func TestTheBotRecoversFromTheFaultsOfThePage(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.click("#wire-switch")
	b.sendText("thread", "before")
	b.waitForReceipts(1)
	b.waitFor("frames pass", "document.querySelectorAll('.frames li').length > 3 && document.querySelector('.frames').innerText.includes('chat.postMessage')")

	b.click("[data-control=drop]")
	b.waitForText(".said", "cut")
	b.sendText("thread", "while it was cut")
	b.waitForReceipts(2)

	b.click("[data-control=no]")
	b.waitForText(".said", "fail")
	b.sendText("thread", "when Slack said no")
	b.waitForReceipts(3)

	b.click("[data-control=twice]")
	b.waitForText(".said", "twice")
	b.sendText("thread", "heard twice")
	b.waitForReceipts(4)

	b.click("[data-control=bot]")
	b.waitForText(".said", "was killed")
	b.waitForText(".facts", "not running")
	b.sendText("thread", "while the bot was dead")
	b.clickLabel(".controls", "Start the bot")
	b.waitForReceipts(5)
	b.waitForText("#thread-list", "Turn 6")
	b.assertTypedOnce("before", "while it was cut", "when Slack said no", "heard twice", "while the bot was dead")

	b.click("[data-control=agent]")
	b.waitForText("#thread-list", "helper is down")
	b.clickLabel(announcementSelector, "Start")
	b.waitForText(announcementSelector, "helper is running")
	b.sendText("thread", "after the agent was killed")
	b.waitForReceipts(6)
	b.waitForText("#thread-list", "Turn 7") // the conversation goes on
}

func TestRestartingAllAfterARotationIsSeenOnThePage(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.sendText("thread", "before the rotation")
	b.waitForReceipts(1)
	b.click("[data-control=rotate]")
	b.waitForText(".facts", demo.KeyVariable)
	b.waitForText("#channel-list", "sessions 1 of 1 running with a stale environment")
	b.sendText("channel", "/the-loop status")
	b.waitForText("#channel-list article:last-child", "1 of 1 running with a stale environment")
	b.clickLabel("#channel-list", "Restart all")
	b.waitForText("#channel-list", "No session runs on a stale environment any more")
	b.waitForText(".facts", "environment is current")
	b.waitFor("the button is gone", "![...document.querySelectorAll('#channel-list button')].some(e => e.innerText === 'Restart all')")
	b.sendText("thread", "after the rotation")
	b.waitForReceipts(2)
	b.waitForText("#thread-list", "Turn 3") // the conversation goes on
	b.sendText("channel", "/the-loop status")
	b.waitFor("status says nothing of it any more", "(t => t.includes('Connected for') && !t.includes('stale'))(document.querySelector('#channel-list article:last-child').innerText)")
}
