package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// browserTimeout bounds what a browser is waited for; machines of CI are slow.
const browserTimeout = 60 * time.Second

// browserTestTimeout bounds a whole test with a browser.
const browserTestTimeout = 5 * time.Minute

// browser is a Chromium of its own with one page in it.
type browser struct {
	t   *testing.T
	ctx context.Context
}

// findChromium finds the browser. Without one the test is skipped, but for CI, where it is an error.
func findChromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("a browser takes long")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatal("there is no Chromium: apt install chromium")
	}
	t.Skip("there is no Chromium")
	return ""
}

// newBrowser starts a Chromium with a profile of its own, and ends it with the test.
func newBrowser(t *testing.T, width, height int64) *browser {
	t.Helper()
	path := findChromium(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(int(width), int(height)), chromedp.Flag("force-color-profile", "srgb"), chromedp.Flag("font-render-hinting", "none"))
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	b := &browser{t: t}
	ctx, cancel := context.WithTimeout(context.Background(), browserTestTimeout)
	ctx, cancelAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, cancelPage := chromedp.NewContext(ctx, chromedp.WithErrorf(log.New(testWriter{t}, "chromium: ", 0).Printf), chromedp.WithListener(b.checkEvent))
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // closes it and waits for its process
		cancelPage()
		cancelAllocator()
		cancel()
	})
	b.ctx = ctx
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(width, height)); err != nil { // the page lives as long as this context
		t.Fatalf("start Chromium: %v", err)
	}
	return b
}

// checkEvent fails the test when the page's script does, or when its policy is broken.
func (b *browser) checkEvent(ev any) {
	switch e := ev.(type) {
	case *runtime.EventExceptionThrown:
		b.t.Errorf("the page's script failed: %+v", e.ExceptionDetails)
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == "error" && !strings.Contains(e.Entry.Text, "Failed to load resource") {
			b.t.Errorf("the page's console: %s %s", e.Entry.Text, e.Entry.URL)
		}
	}
}

// testWriter writes to the test's log.
type testWriter struct{ t *testing.T }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		b.t.Fatalf("%v\n%s", err, b.text("body"))
	}
}

// open goes to the address and waits until the page shows what there is.
func (b *browser) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url), chromedp.WaitReady(chromedp.CSS(`body[data-ready][data-stream=open]`)))
}

// waitFor waits until an expression in the page is true.
func (b *browser) waitFor(what, expression string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
	defer cancel()
	_, err := chromedp.Run(ctx, chromedp.Poll[bool](expression, chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(browserTimeout)))
	if err != nil {
		b.t.Fatalf("%s: %v\n%s", what, err, b.text("body"))
	}
}

// text is what can be read in the first element that matches; empty when there is none.
func (b *browser) text(selector string) string {
	return evaluate[string](b, fmt.Sprintf("document.querySelector(%q)?.innerText || ''", selector))
}

// waitForText waits until a text can be read in the first element that matches.
func (b *browser) waitForText(selector, text string) {
	b.t.Helper()
	b.waitFor(fmt.Sprintf("%s shows %q", selector, text), fmt.Sprintf("(document.querySelector(%q)?.innerText || '').includes(%q)", selector, text))
}

// count is how many elements match.
func (b *browser) count(selector string) int {
	b.t.Helper()
	return evaluate[int](b, fmt.Sprintf("document.querySelectorAll(%q).length", selector))
}

// evaluate is the value of an expression in the page.
func evaluate[T any](b *browser, expression string) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return value
}

// click presses what matches, once it is there.
func (b *browser) click(selector string) {
	b.t.Helper()
	b.do(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// sendText types a message into the composer of the channel or of the thread, and sends it with the Enter key.
func (b *browser) sendText(where, text string) {
	b.t.Helper()
	b.typeText(where, text)
	b.pressKey("Enter", 13)
}

// typeText types into a composer and sends nothing.
func (b *browser) typeText(where, text string) {
	b.t.Helper()
	b.do(chromedp.Focus(chromedp.CSS("#" + where + "-text")))
	if _, err := chromedp.Call(b.ctx, input.InsertText, input.InsertTextParams{Text: text}); err != nil {
		b.t.Fatal(err)
	}
}

// pressKey presses a key that makes no character.
func (b *browser) pressKey(name string, code int64) {
	b.t.Helper()
	for _, kind := range []input.DispatchKeyEventType{"rawKeyDown", "keyUp"} {
		if _, err := chromedp.Call(b.ctx, input.DispatchKeyEvent, input.DispatchKeyEventParams{Type: kind, Key: name, Code: name, WindowsVirtualKeyCode: code}); err != nil {
			b.t.Fatal(err)
		}
	}
}

// switchPersona writes as somebody else from now on.
func (b *browser) switchPersona(name string) {
	b.t.Helper()
	b.waitFor("no modal is in the way", "!document.querySelector('dialog[open]')")
	b.click(fmt.Sprintf("#who [data-user]:nth-child(%d)", map[string]int{"Ann": 1, "Bob": 2, "Mallory": 3}[name]))
	b.waitForText("#who [aria-checked=true]", name)
	b.waitForText("#about", name)
}

func (b *browser) setDarkMode(on bool) {
	scheme := "light"
	if on {
		scheme = "dark"
	}
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"}}
	if _, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: features}); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) screenshot() []byte {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, browserTimeout)
	defer cancel()
	png, err := chromedp.Run(ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	return png
}

// runningDemo is a demo as a process of its own, as somebody starts it.
type runningDemo struct {
	t    *testing.T
	url  string
	out  string // what it printed until the page was there
	tmp  string
	cmd  *exec.Cmd
	done chan error
}

var pageAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/\?key=\w+`)

// startDemo starts the demo and waits for its page. With the test it is interrupted, and has to leave nothing behind.
func startDemo(t *testing.T, args ...string) *runningDemo {
	t.Helper()
	findChromium(t)
	return startDemoWith(t, "", nil, args...)
}

// startDemoWith is startDemo beside a configuration of the operator's with these lines, and with more in its environment.
func startDemoWith(t *testing.T, lines string, env []string, args ...string) *runningDemo {
	t.Helper()
	tmp, err := os.MkdirTemp("/tmp", "tl") // short: a socket's path goes into it
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	d := &runningDemo{t: t, tmp: tmp, done: make(chan error, 1)}
	d.cmd = exec.Command(self, append([]string{"demo", "--no-open"}, args...)...)
	d.cmd.Env = append(append(os.Environ(), runVariable+"=1", "TMPDIR="+tmp), env...)
	if lines != "" {
		own := filepath.Join(t.TempDir(), "cli-config.yaml")
		if err := os.WriteFile(own, []byte("version: 1\n"+lines), 0o600); err != nil {
			t.Fatal(err)
		}
		d.cmd.Env = append(d.cmd.Env, "THE_LOOP_CLI_CONFIG="+own)
	}
	d.cmd.Stderr = testWriter{t}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 100)
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			said <- lines.Text()
		}
		close(said)
		d.done <- d.cmd.Wait()
	}()
	t.Cleanup(d.interrupt)
	d.readOutput(said)
	return d
}

// readOutput reads what it prints up to the last line of the greeting, and goes on reading.
func (d *runningDemo) readOutput(said <-chan string) {
	d.t.Helper()
	timeout := time.After(browserTimeout)
	for !strings.Contains(d.out, "Ctrl-C") {
		select {
		case line, ok := <-said:
			if !ok {
				d.t.Fatalf("the demo ended: %s", d.out)
			}
			d.out += line + "\n"
		case <-timeout:
			d.t.Fatalf("the demo said only %q", d.out)
		}
	}
	d.url = pageAddress.FindString(d.out)
	go func() {
		for range said { // so that it can go on writing
		}
	}()
}

// interrupt is Ctrl-C. Nothing may be left: no file, no process.
func (d *runningDemo) interrupt() {
	_ = d.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	select {
	case err := <-d.done:
		if err != nil {
			d.t.Errorf("the demo ended with %v", err)
		}
	case <-time.After(browserTimeout):
		d.t.Error("the demo does not end")
		_ = d.cmd.Process.Kill()
		<-d.done
	}
	if left, err := os.ReadDir(d.tmp); err != nil || len(left) > 0 {
		d.t.Errorf("the demo left the files %v, %v", left, err)
	}
	if left := processesNaming(d.tmp); len(left) > 0 {
		d.t.Errorf("the demo left the processes %q", left)
	}
	if err := os.RemoveAll(d.tmp); err != nil {
		d.t.Error(err)
	}
}

// processesNaming are the command lines of processes that name a path, in their arguments or as their working folder.
func processesNaming(path string) (lines []string) {
	all, _ := filepath.Glob("/proc/[0-9]*") // the pattern is well-formed
	for _, p := range all {
		line, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		dir, _ := os.Readlink(filepath.Join(p, "cwd")) // it may have ended, or be somebody else's
		if strings.Contains(string(line), path) || strings.HasPrefix(dir, path) {
			lines = append(lines, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return lines
}
