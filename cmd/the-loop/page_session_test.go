package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

const announcementSelector = "#thread-list article:first-child"

// clickLabel presses the button with that label in the first element that matches, once it is there.
func (b *browser) clickLabel(within, label string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].flatMap(e => [...e.querySelectorAll('button')]).find(e => e.innerText.trim() === %q)", within, label)
	b.waitFor(fmt.Sprintf("%s has a button %q", within, label), "!!"+find)
	evaluate[bool](b, "("+find+".click(), true)")
}

// fill enters a value in a field of the modal, by its block.
func (b *browser) fill(block, value string) {
	b.t.Helper()
	evaluate[bool](b, fmt.Sprintf(`(() => { const e = document.querySelector('#modal [data-block=%s]'); e.value = %q; e.dispatchEvent(new Event('input', {bubbles: true})); return true })()`, block, value))
}

func TestEveryButtonOfASessionWorksOnThePage(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.clickLabel(announcementSelector, "Peek")
	b.waitForText("#thread-list .ephemeral", "Only visible to you")
	b.waitForText("#thread-list .ephemeral pre", "small agent · ready")
	b.clickLabel("#thread-list .ephemeral", "Dismiss message")
	b.waitFor("it is gone", "!document.querySelector('#thread-list .ephemeral')")

	b.clickLabel(announcementSelector, "Stop")
	b.waitForText(announcementSelector, "helper is stopped")
	b.waitForText("#stage", "there is no terminal")
	b.clickLabel(announcementSelector, "Start")
	b.waitForText(announcementSelector, "helper is running")
	b.waitForText(screenSelector, "small agent")
	b.clickLabel(announcementSelector, "Restart")
	b.waitForText("#thread-list .ephemeral", "helper")
	b.waitForText(announcementSelector, "helper is running")

	b.click(announcementSelector) // its menu comes with the focus
	b.click(announcementSelector + " .toolbar [aria-label=More]")
	b.clickLabel("#pop", "Session\nthe-loop")
	b.waitForText("#modal", "helper")
	b.pressKey("Escape", 27)
	b.waitFor("the modal is closed", "!document.querySelector('#modal').open")

	b.click("#apps button")
	b.waitForText("#home", "helper running")
	b.clickLabel("#home", "Stop")
	b.waitForText("#home", "stopped")
}

func TestAFormOnThePageShowsErrorsAtTheirFields(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.sendText("channel", "/the-loop create")
	b.waitForText("#modal", "Create a session")
	b.clickLabel("#modal", "Create")
	b.waitForText("#modal .block-input", "Please complete this required field.")
	b.waitFor("the focus is in the field that is wrong", "document.activeElement.dataset.block === 'name' && document.activeElement.getAttribute('aria-invalid') === 'true'")
	b.fill("name", "helper")
	b.fill("cwd", "/none/such")
	b.clickLabel("#modal", "Create")
	b.waitFor("the app's own words", "document.querySelectorAll('#modal .wrong:not(:empty)').length === 1 && !document.querySelector('#modal .block-input')?.innerText.includes('required')")
	if kept := evaluate[string](b, "document.querySelector('#modal [data-block=cwd]').value"); kept != "/none/such" {
		t.Errorf("what was entered is gone: %q", kept)
	}
	for range 12 { // the focus does not leave the modal
		b.pressKey("Tab", 9)
		if !evaluate[bool](b, "document.querySelector('#modal').contains(document.activeElement) || document.activeElement === document.body") {
			t.Fatal("the focus left the modal")
		}
	}
	b.fill("name", "second")
	b.fill("cwd", "")
	b.fill("brief", "Look after the <b>tests</b>.")
	b.clickLabel("#modal", "Create")
	b.waitFor("another announcement", "[...document.querySelectorAll('#channel-list article')].some(e => e.innerText.includes('second is running'))")
	b.clickLabel("#modal", "Close")
	b.waitFor("the modal is closed", "!document.querySelector('#modal').open")

	b.sendText("channel", "/the-loop delete second")
	b.waitForText("#modal", "Delete second?")
	b.clickLabel("#modal", "Delete")
	b.waitForText("#channel-list", "second was deleted")
}

func TestSlashCommandsAreSuggestedAndRefusedInThreads(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.typeText("channel", "/the-loop st")
	b.waitForText("#channel-pane .suggestions", "/the-loop status")
	b.pressKey("Tab", 9)
	b.pressKey("Enter", 13)
	b.waitForText("#channel-list article:last-child", "Connected for")
	b.typeText("thread", "/the-loop status")
	b.waitForText("#thread-pane .suggestions", "do not work in threads")
	b.pressKey("Enter", 13)
	b.waitForText("#thread-pane .composer-said", "/the-loop is not supported in threads. Sorry!")
	b.sendText("channel", "/nonsense")
	b.waitForText("#channel-pane .composer-said", "is not a valid command")
	b.switchPersona("Bob")
	b.sendText("channel", "/the-loop status")
	b.waitFor("the app has heard of it", "document.querySelector('#channel-text').value === '' && !document.querySelector('#channel-composer[aria-busy]')")
	b.sendText("channel", "Nobody answers me")
	b.waitForText("#channel-list", "Nobody answers me")
	if text := b.text("#channel-list .ephemeral"); text != "" {
		t.Errorf("bob was told: %s", text)
	}
}

func TestAPermissionQuestionIsAnsweredOnThePage(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.sendText("thread", "ask: run the tests")
	b.waitForText("#thread-list", "The agent asks to use")
	b.waitForText(screenSelector, "Allow run the tests?")
	b.switchPersona("Bob")
	b.clickLabel("#thread-list", "Allow")
	b.switchPersona("Ann")
	b.waitForText(screenSelector, "Allow run the tests?") // bob got nowhere
	b.clickLabel("#thread-list", "Allow")
	b.waitForText("#thread-list", "Allowed by @ann")
	b.waitForText(screenSelector, "ready")

	b.sendText("thread", "ask: drop the database")
	b.waitForText(screenSelector, "Allow drop the database?")
	b.clickLabel("#thread-list", "Deny with a reason…")
	b.waitFor("a form", "document.querySelector('#modal').open && !!document.querySelector('#modal textarea, #modal input')")
	evaluate[bool](b, "(document.querySelector('#modal textarea, #modal input').value = 'Not on a Friday', document.querySelector('#modal [type=submit]').click(), true)")
	b.waitForText("#thread-list", "Denied, with a reason, by @ann")
	b.waitForText(screenSelector, "ready")
	b.clickLabel("#modal", "Close")
	b.waitFor("the modal is closed", "!document.querySelector('#modal').open")
}

func TestAQuestionAndAPlanAreAnsweredOnThePage(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.sendText("thread", "choose: Which colour? | Red | Blue, or so")
	b.waitForText("#thread-list", "The agent has a question")
	b.waitForText(screenSelector, "Which colour?")
	b.clickLabel("#thread-list", "Blue, or so")
	b.waitForText("#thread-list", "Answered Blue, or so by @ann")
	b.waitForText(screenSelector, "chosen Blue, or so")
	b.waitForText(screenSelector, "ready")

	b.sendText("thread", "choose: How many? | One | Two")
	b.waitForText(screenSelector, "How many?")
	b.clickLabel("#thread-list", "Other…")
	b.waitForText("#modal", "Answer the agent")
	b.clickLabel("#modal", "Answer")
	b.waitForText("#modal", "choose one of these, or write your own answer below")
	b.fill("words0", "as many as you like")
	b.clickLabel("#modal", "Answer")
	b.waitForText("#thread-list", "Answered in their own words by @ann")
	b.waitForText(screenSelector, "chosen as many as you like")
	b.waitForText(screenSelector, "ready")
	b.clickLabel("#modal", "Close")
	b.waitFor("the modal is closed", "!document.querySelector('#modal').open")

	b.sendText("thread", "plan: 1. Look. 2. Leap.")
	b.waitForText("#thread-list", "The agent has a plan")
	b.waitForText(screenSelector, "Allow the plan?")
	b.clickLabel("#thread-list", "Approve, accept edits")
	b.waitForText("#thread-list", "Plan approved, with edits accepted unasked, by @ann")
	b.waitForText(screenSelector, "approved acceptEdits")
}

func TestFilesAndPicturesGoBothWaysOnThePage(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	path := filepath.Join(t.TempDir(), "notes <b>.txt")
	if err := os.WriteFile(path, []byte("what is to be read"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.do(chromedp.SetUploadFiles(chromedp.CSS("#thread-composer input[type=file]"), []string{path}, chromedp.NodeReady))
	b.waitForText("#thread-composer .chips", "notes <b>.txt")
	b.sendText("thread", "Please read this")
	b.waitForText("#thread-list .file", "notes <b>.txt")
	b.waitForReceipts(1)
	b.waitForText(screenSelector, "Please read this")
	b.waitForText(screenSelector, "notes") // the agent is told where it is
	b.sendText("channel", "/the-loop peek helper --share")
	b.waitFor("a picture of the terminal", "(document.querySelector('#thread-list figure img')?.naturalWidth || 0) > 100")
	b.waitFor("the list is at its end", "(s => s.scrollHeight - s.scrollTop - s.clientHeight < 4)(document.querySelector('#thread-scroll'))")
}
