package threads

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

// reportedFileMessages makes the messages with the files that an agent reported, and copies the files into the outbox. A report may be
// forged, by the agent or what it ran: each file is judged here, from within the session's folder, whatever was judged
// before. One that is refused is a letter that says so.
func (t *thread) reportedFileMessages(noted sessions.ReportBatch) ([]*outbox.Message, error) {
	messages := make([]*outbox.Message, 0, len(noted.Files))
	for _, f := range noted.Files {
		sum := sha256.Sum256([]byte(f.At.Format(time.RFC3339Nano) + "\x00" + f.Path + "\x00" + f.Comment))
		l := &outbox.Message{Post: chat.Post{Text: t.caption(f), Nonce: t.sessionID + ".file." + hex.EncodeToString(sum[:12]), Session: t.sessionID}, Since: t.m.o.Clock.FromLocal(f.At)}
		err := t.attachReportedFile(attachments.Folder{Path: noted.Cwd, ID: noted.FolderID}, f.Path, l)
		var final *chat.FileError
		switch {
		case errors.As(err, &final):
			l.Post.Text = outbox.FileNotPostedText(t.m.safeFileLabel(f.Path), final.Why)
		case err != nil:
			return nil, err
		}
		messages = append(messages, l)
	}
	return messages, nil
}

// queueReportedFiles puts the messages with an agent's files into the outbox. Those of an earlier run may have been posted before it could
// be stored how far the reports were read.
func (t *thread) queueReportedFiles(messages []*outbox.Message) error {
	for _, l := range messages {
		l.Post.Channel, l.Post.Root, l.MaybePosted = t.b.Channel, t.b.Root, !t.reportsSynced
		if err := t.m.outbox.Put(l); err != nil {
			return fmt.Errorf("keep what the agent wants to post: %w", err)
		}
	}
	return nil
}

// caption is the agent's comment as a message; a file may have none.
func (t *thread) caption(f sessions.ReportedFile) string {
	if strings.TrimSpace(f.Comment) == "" {
		return ""
	}
	texts := t.m.renderAnswer(t.ref, sessions.AgentMessage{Text: f.Comment, At: f.At}).Texts
	if len(texts) == 0 {
		return ""
	}
	return texts[0]
}

// attachReportedFile copies one file of the session's folder into the outbox, for a message. The error is a [*chat.FileError] when
// the file may not be posted.
func (t *thread) attachReportedFile(dir attachments.Folder, path string, msg *outbox.Message) error {
	if t.m.isSecret(path) {
		return &chat.FileError{Why: "its name holds a value of the environment or a token, and those are posted nowhere"}
	}
	file, err := attachments.Open(dir, path, t.m.o.Settings().MaxFile)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	return t.m.outbox.Attach(msg, attachments.PostedName(path), file)
}

// isSecret reports a text that holds what must be posted nowhere.
func (m *Manager) isSecret(text string) bool { return m.o.IsSecret != nil && m.o.IsSecret(text) }

// safeFileLabel is the name of a file as a thread is told it. It may be cut, so that a secret in it would not be found any more.
func (m *Manager) safeFileLabel(path string) string {
	if m.isSecret(path) {
		return attachments.Label("")
	}
	return attachments.Label(path)
}
