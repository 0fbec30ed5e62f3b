package relay

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"the-loop/sessions"
	"the-loop/threads/attachments"
	"the-loop/threads/chat"
	"the-loop/threads/outbox"
)

// reportedFileMessages makes the messages with the files that an agent reported, and copies the files into the outbox. A report may
// be forged, by the agent or what it ran, so each file is checked again here. For a file that is refused the message says so.
func (rl *Relay) reportedFileMessages(batch sessions.ReportBatch) ([]*outbox.Message, error) {
	messages := make([]*outbox.Message, 0, len(batch.Files))
	for _, f := range batch.Files {
		sum := sha256.Sum256([]byte(f.At.Format(time.RFC3339Nano) + "\x00" + f.Path + "\x00" + f.Comment))
		msg := &outbox.Message{Post: chat.Post{Text: rl.caption(f), Nonce: rl.SessionID + ".file." + hex.EncodeToString(sum[:12]), Session: rl.SessionID}, Since: rl.o.Clock.FromLocal(f.At)}
		err := rl.attachReportedFile(attachments.Folder{Path: batch.Cwd, ID: batch.FolderID}, f.Path, msg)
		var final *chat.FileError
		switch {
		case errors.As(err, &final):
			msg.Post.Text = outbox.FileNotPostedText(rl.safeLabel(f.Path), final.Why)
		case err != nil:
			return nil, err
		}
		messages = append(messages, msg)
	}
	return messages, nil
}

// queueReportedFiles queues the messages with an agent's files. An earlier run may have posted them before it could store how far the
// reports were read.
func (rl *Relay) queueReportedFiles(messages []*outbox.Message) error {
	for _, msg := range messages {
		msg.Post.Channel, msg.Post.Root, msg.MaybePosted = rl.B.Channel, rl.B.Root, !rl.reportsSynced
		if err := rl.o.Outbox.Put(msg); err != nil {
			return fmt.Errorf("queue what the agent wants to post: %w", err)
		}
	}
	return nil
}

// caption is the agent's comment as a message; a file may have none.
func (rl *Relay) caption(f sessions.ReportedFile) string {
	if strings.TrimSpace(f.Comment) == "" {
		return ""
	}
	texts := rl.o.Render(rl.Ref, sessions.AgentMessage{Text: f.Comment, At: f.At}).Texts
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// attachReportedFile copies one file of the session's folder into the outbox, for a message. The error is a [*chat.FileError] when
// the file may not be posted.
func (rl *Relay) attachReportedFile(dir attachments.Folder, path string, msg *outbox.Message) error {
	if rl.o.IsSecret(path) {
		return &chat.FileError{Why: "its name holds a value of the environment or a token, and those are posted nowhere"}
	}
	file, err := attachments.Open(dir, path, rl.o.MaxFile())
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return rl.o.Outbox.Attach(msg, attachments.PostedName(path), file)
}

// safeLabel is the name of a file for the thread. A long one is cut, so a secret in it would not be found afterwards.
func (rl *Relay) safeLabel(path string) string {
	if rl.o.IsSecret(path) {
		return attachments.Label("")
	}
	return attachments.Label(path)
}
