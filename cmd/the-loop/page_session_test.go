package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
)

const announcement = "#thread-list article:first-child"

// press presses the button with that label in the first element that matches, once it is there.
func (b *browser) press(within, label string) {
	b.t.Helper()
	find := fmt.Sprintf("[...document.querySelectorAll(%q)].flatMap(e => [...e.querySelectorAll('button')]).find(e => e.innerText.trim() === %q)", within, label)
	b.until(fmt.Sprintf("%s has a button %q", within, label), "!!"+find)
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
	b.press(announcement, "Peek")
	b.shows("#thread-list .ephemeral", "Only visible to you")
	b.shows("#thread-list .ephemeral pre", "small agent · ready")
	b.press("#thread-list .ephemeral", "Dismiss message")
	b.until("it is gone", "!document.querySelector('#thread-list .ephemeral')")

	b.press(announcement, "Stop")
	b.shows(announcement, "helper is stopped")
	b.shows("#stage", "there is no terminal")
	b.press(announcement, "Start")
	b.shows(announcement, "helper is running")
	b.shows(screen, "small agent")
	b.press(announcement, "Restart")
	b.shows("#thread-list .ephemeral", "helper")
	b.shows(announcement, "helper is running")

	b.click(announcement) // its menu comes with the focus
	b.click(announcement + " .toolbar [aria-label=More]")
	b.press("#pop", "Session\nthe-loop")
	b.shows("#modal", "helper")
	b.key("Escape", 27)
	b.until("the modal is closed", "!document.querySelector('#modal').open")

	b.click("#apps button")
	b.shows("#home", "helper running")
	b.press("#home", "Stop")
	b.shows("#home", "stopped")
}

func TestAFormOnThePageShowsWhatIsWrongAtItsField(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.write("channel", "/the-loop create")
	b.shows("#modal", "Create a session")
	b.press("#modal", "Create")
	b.shows("#modal .block-input", "Please complete this required field.")
	b.until("the focus is in the field that is wrong", "document.activeElement.dataset.block === 'name' && document.activeElement.getAttribute('aria-invalid') === 'true'")
	b.fill("name", "helper")
	b.fill("cwd", "/none/such")
	b.press("#modal", "Create")
	b.until("the app's own words", "document.querySelectorAll('#modal .wrong:not(:empty)').length === 1 && !document.querySelector('#modal .block-input')?.innerText.includes('required')")
	if kept := evaluate[string](b, "document.querySelector('#modal [data-block=cwd]').value"); kept != "/none/such" {
		t.Errorf("what was entered is gone: %q", kept)
	}
	for range 12 { // the focus does not leave the modal
		b.key("Tab", 9)
		if !evaluate[bool](b, "document.querySelector('#modal').contains(document.activeElement) || document.activeElement === document.body") {
			t.Fatal("the focus left the modal")
		}
	}
	b.fill("name", "second")
	b.fill("cwd", "")
	b.fill("brief", "Look after the <b>tests</b>.")
	b.press("#modal", "Create")
	b.until("another announcement", "[...document.querySelectorAll('#channel-list article')].some(e => e.innerText.includes('second is running'))")
	b.press("#modal", "Close")
	b.until("the modal is closed", "!document.querySelector('#modal').open")

	b.write("channel", "/the-loop delete second")
	b.shows("#modal", "Delete second?")
	b.press("#modal", "Delete")
	b.shows("#channel-list", "second was deleted")
}

func TestSlashCommandsAreSuggestedAndRefusedInThreads(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.enter("channel", "/the-loop st")
	b.shows("#channel-pane .suggestions", "/the-loop status")
	b.key("Tab", 9)
	b.key("Enter", 13)
	b.shows("#channel-list article:last-child", "Connected for")
	b.enter("thread", "/the-loop status")
	b.shows("#thread-pane .suggestions", "do not work in threads")
	b.key("Enter", 13)
	b.shows("#thread-pane .composer-said", "/the-loop is not supported in threads. Sorry!")
	b.write("channel", "/nonsense")
	b.shows("#channel-pane .composer-said", "is not a valid command")
	b.as("Bob")
	b.write("channel", "/the-loop status")
	b.until("the app has heard of it", "document.querySelector('#channel-text').value === '' && !document.querySelector('#channel-composer[aria-busy]')")
	b.write("channel", "Nobody answers me")
	b.shows("#channel-list", "Nobody answers me")
	if text := b.text("#channel-list .ephemeral"); text != "" {
		t.Errorf("bob was told: %s", text)
	}
}

func TestAPermissionQuestionIsAnsweredOnThePage(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.write("thread", "ask: run the tests")
	b.shows("#thread-list", "The agent asks to use")
	b.shows(screen, "Allow run the tests?")
	b.as("Bob")
	b.press("#thread-list", "Allow")
	b.as("Ann")
	b.shows(screen, "Allow run the tests?") // bob got nowhere
	b.press("#thread-list", "Allow")
	b.shows("#thread-list", "Allowed by @ann")
	b.shows(screen, "ready")

	b.write("thread", "ask: drop the database")
	b.shows(screen, "Allow drop the database?")
	b.press("#thread-list", "Deny with a reason…")
	b.until("a form", "document.querySelector('#modal').open && !!document.querySelector('#modal textarea, #modal input')")
	evaluate[bool](b, "(document.querySelector('#modal textarea, #modal input').value = 'Not on a Friday', document.querySelector('#modal [type=submit]').click(), true)")
	b.shows("#thread-list", "Denied, with a reason, by @ann")
	b.shows(screen, "ready")
	b.press("#modal", "Close")
	b.until("the modal is closed", "!document.querySelector('#modal').open")
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
	b.shows("#thread-composer .chips", "notes <b>.txt")
	b.write("thread", "Please read this")
	b.shows("#thread-list .file", "notes <b>.txt")
	b.receipts(1)
	b.shows(screen, "Please read this")
	b.shows(screen, "notes") // the agent is told where it is
	b.write("channel", "/the-loop peek helper --share")
	b.until("a picture of the terminal", "(document.querySelector('#thread-list figure img')?.naturalWidth || 0) > 100")
	b.until("the list is at its end", "(s => s.scrollHeight - s.scrollTop - s.clientHeight < 4)(document.querySelector('#thread-scroll'))")
}
