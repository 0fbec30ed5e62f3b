package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const allBlocks = `[
 {"type":"header","text":{"type":"plain_text","text":"A header"}},
 {"type":"section","text":{"type":"mrkdwn","text":"*bold* _italic_ ~struck~ ` + "`code`" + ` <https://example.com|a link> :eyes:\n&gt; a quote\n` + "```a block```" + `"},
  "fields":[{"type":"mrkdwn","text":"*left*"},{"type":"plain_text","text":"right"}],
  "accessory":{"type":"overflow","action_id":"o","options":[{"text":{"type":"plain_text","text":"First"},"value":"1"}]}},
 {"type":"divider"},
 {"type":"context","elements":[{"type":"mrkdwn","text":"a context"}]},
 {"type":"markdown","text":"# Title\n\n- one\n- [x] two\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n` + "```go\\nfunc main() {}\\n```" + `\n\n**strong** and [link](https://example.com/x)"},
 {"type":"image","image_url":"https://example.com/a.png","alt_text":"a picture elsewhere"},
 {"type":"actions","elements":[{"type":"static_select","action_id":"s","placeholder":{"type":"plain_text","text":"Pick"},"options":[{"text":{"type":"plain_text","text":"First"},"value":"1"}]},
  {"type":"datepicker","action_id":"d"},{"type":"workflow_button","action_id":"w"}]},
 {"type":"rich_text","elements":[{"type":"rich_text_list","style":"ordered","elements":[{"type":"rich_text_section","elements":[{"type":"text","text":"item"}]}]}]},
 {"type":"video","title":{"type":"plain_text","text":"x"}}]`

func TestEveryKindOfBlockIsShownOrNamed(t *testing.T) {
	w := startPageEnv(t)
	w.call("chat.postMessage", "channel", w.ch, "text", "all", "blocks", allBlocks)
	b := newBrowser(t, 1440, 900)
	b.open(w.page.URL())
	for _, selector := range []string{"strong", "em", "s", "code", "a[href='https://example.com']", ".emoji", "blockquote", "pre", ".field", "select", "hr", ".context", "ol li",
		".markdown table td", ".markdown pre", ".markdown .heading", ".markdown li", "input[type=date]"} {
		if b.count("#channel-list .text "+selector) == 0 {
			t.Errorf("there is no %s", selector)
		}
	}
	b.waitForText("#channel-list .text", "Picture, not fetched: a picture elsewhere")
	b.waitForText("#channel-list .text", "Something of the type “video”")
	b.waitForText("#channel-list .text", "Something of the type “workflow_button”")
	b.do(chromedp.Evaluate[chromedp.Void]("void (() => { const s = document.querySelector('#channel-list .actions select'); s.value = '1'; s.dispatchEvent(new Event('change', {bubbles: true})) })()"))
	b.waitForText("#channel-list .failed", "did not respond") // there is no app to hear of it
}

// Everything can be used on a phone, and nothing is wider than it.
func TestThePageOnAPhone(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 390, 844)
	b.do(chromedp.EmulateViewport(390, 844, chromedp.EmulateMobile, chromedp.EmulateTouch))
	b.open(d.url)
	narrow := func(where string) {
		t.Helper()
		if wide := evaluate[float64](b, "Math.max(document.documentElement.scrollWidth, ...[...document.querySelectorAll('.pane')].map(e => e.getBoundingClientRect().right))"); wide > 390 {
			t.Errorf("%s is %v wide", where, wide)
		}
	}
	tap := func(selector string) {
		t.Helper()
		b.do(chromedp.Tap(chromedp.CSS(selector), chromedp.NodeVisible))
	}
	b.waitForText("#channel-list", "helper is running")
	narrow("the channel")
	tap("#channel-list .replies")
	b.waitForText("#thread-list", "helper is running")
	narrow("the thread")
	b.sendText("thread", "from a phone")
	b.waitForReceipts(1)
	tap("#show-stage")
	b.waitForText(screenSelector, "from a phone")
	narrow("the terminal")
	tap("#stage-back")
	tap("#thread-list article:last-child .toolbar [aria-label=More]")
	b.waitForText("#pop", "Session")
	b.pressKey("Escape", 27)
	tap("#thread-back")
	tap("#menu")
	tap("#apps button")
	b.waitForText("#home", "helper running")
	narrow("the Home tab")
	tap("#menu")
	tap("#channels button")
	tap("#who [data-user]:nth-child(2)")
	b.waitForText("#about", "Bob")
	narrow("the channel again")
}

func TestThePageIsUsedWithTheKeyboardAlone(t *testing.T) {
	d := startDemo(t)
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	unnamed := evaluate[[]string](b, `[...document.querySelectorAll('button, input, select, textarea, a[href]')].filter(e => e.offsetParent && !e.ariaHidden && !(e.getAttribute('aria-label') || e.innerText.trim() || e.labels?.length || e.title)).map(e => e.outerHTML.slice(0, 80))`)
	if len(unnamed) > 0 {
		t.Errorf("nobody is told what these are: %q", unnamed)
	}
	b.waitForText(screenSelector, "small agent")
	reached := map[string]bool{}
	for range 60 {
		b.pressKey("Tab", 9)
		at := evaluate[string](b, "document.activeElement.id || document.activeElement.dataset.control || document.activeElement.tagName")
		reached[at] = true
	}
	for _, want := range []string{"wire-switch", "channel-text", "thread-text", "ARTICLE", "bot", "rotate"} {
		if !reached[want] {
			t.Errorf("Tab does not reach %s: %v", want, reached)
		}
	}
	b.do(chromedp.Focus(chromedp.CSS("#thread-text")))
	b.pressKey("Escape", 27)
	b.waitFor("the thread is closed, and the focus is on its root", "document.querySelector('#thread-pane').hidden && document.activeElement.tagName === 'ARTICLE'")
	b.do(chromedp.Focus(chromedp.CSS("#who [aria-checked=true]")))
	b.pressKey("ArrowRight", 39)
	b.waitForText("#about", "Bob")
}

// The demo takes any harness that the operator's configuration describes, and says which it does not know.
func TestTheDemoRunsAnotherHarness(t *testing.T) {
	findChromium(t)
	d := startDemoWith(t, `harnesses:
  mine: {binary: /bin/sh, args: ["-c", "exec cat", "{sessionId}"], resumeArgs: ["-c", "exec cat", "{sessionId}"], reports: program, commandPrefixes: ["/"], submitDelayMs: 50}
`, nil, "--harness", "mine")
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.waitForText("#thread-list", "An agent to play with: mine")
	b.sendText("thread", "is echoed")
	b.waitForText(screenSelector, "is echoed")
	b.waitFor("a receipt", "!!document.querySelector('#thread-list .reaction')")
}

func TestTheDemoNamesAnUnknownHarness(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	env := systemEnvironment()
	var out, errOut bytes.Buffer
	env.out, env.err = &out, &errOut
	began := time.Now()
	code := run(t.Context(), []string{"demo", "--no-open", "--harness", "nonesuch"}, env)
	if code != exitUsage || !strings.Contains(errOut.String(), "unknown harness nonesuch") {
		t.Errorf("exit code %d after %s, %q", code, time.Since(began), errOut.String())
	}
}
