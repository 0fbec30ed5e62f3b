package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"the-loop/cmd/internal/demo"
	"the-loop/sessions/harness/harnesstest"
)

// The real Claude Code, its permissions included, with a model on loopback.
func TestRealClaudeOnThePage(t *testing.T) {
	findChromium(t)
	home, model := t.TempDir(), harnesstest.NewModel(t)
	agent := harnesstest.Claude(t, home, model)
	var env []string
	for name, value := range agent.Env {
		env = append(env, name+"="+value)
	}
	sort.Strings(env)
	file := filepath.Join(home, "agents.env")
	if err := os.WriteFile(file, []byte(strings.Join(env, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	d := startDemoWith(t, fmt.Sprintf("env: {file: %q}\nharnesses: {claude: {binary: %q}}\n", file, agent.Binary), []string{"HOME=" + home}, "--harness", "claude")
	b := newBrowser(t, 1440, 900)
	b.open(d.url)
	b.waitForText("#thread-list", "Answer ")
	b.sendText("thread", "[[say hello from Claude]]")
	b.waitForText("#thread-list article:last-child", "hello from Claude")
	b.waitForReceipts(1)
	b.sendText("thread", "[[run touch ALLOWED]]")
	b.waitForText("#thread-list", "The agent asks to use Bash")
	b.clickLabel("#thread-list", "Allow")
	b.waitForText("#thread-list", "Allowed by @ann")
	b.waitForText(".facts", "environment is current")
	b.click("[data-control=rotate]")
	b.waitForText(".facts", demo.KeyVariable)
	if kept, err := os.ReadFile(file); err != nil || strings.Contains(string(kept), demo.KeyVariable) {
		t.Errorf("the operator's own credentials were changed: %s, %v", kept, err)
	}
	if b.count("#stage .screen span[style*=color]") == 0 {
		t.Error("the terminal has no colours")
	}
}
