package bot_test

import (
	"os"
	"path/filepath"
	"testing"
)

// The disk takes nothing any more: a reply waits and its thread is told, status says so, and when the disk is well again the
// reply is typed, once. Sending needs no disk.
func TestAReplyWaitsWhileTheDiskTakesNothing(t *testing.T) {
	t.Parallel()
	l := newBotEnv(t)
	a := l.createSession("careful")
	a.replyAccepted("before")
	dir := filepath.Join(l.botConfig.Root, "threads")
	if err := os.Rename(dir, dir+".away"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // nothing can be written below it
		t.Fatal(err)
	}
	ts := a.reply("during")
	a.waitReceipt(ts, receiptHeld)
	a.waitBotMessage("Held, and typed as soon as it can be", "not a directory", "Make room on it")
	if got := l.statusAnswer(); !containsAll(got, "cannot write to its disk (not a directory), so replies wait") {
		t.Errorf("the status says %q", got)
	}
	a.wantReceived("before")
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+".away", dir); err != nil {
		t.Fatal(err)
	}
	a.waitReceipt(ts, receiptAccepted)
	a.wantReceived("before", "during")
	if n := a.countBotMessages("Make room on it"); n != 1 {
		t.Errorf("the thread was told %d times", n)
	}
}
