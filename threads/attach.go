package threads

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"the-loop/sessions"
	"the-loop/threads/attachments"
	"the-loop/threads/chat"
)

// Folders says where sessions work. The core does, see core.Queries.Folder.
type Folders interface {
	Folder(ctx context.Context, q sessions.FolderRequest) (string, error)
}

// downloadAttachments downloads the files of a reply into the session's folder.
func (rs *replies) downloadAttachments(ctx context.Context, a attempt, c chat.Content) (text, missing string, err error) {
	dir, err := rs.svc.Folders.Folder(ctx, sessions.FolderRequest{Ref: rs.Ref, ID: rs.SessionID})
	if err != nil {
		return "", "", err
	}
	return rs.svc.downloader.Download(ctx, attachments.Reply{Ref: rs.Ref, Folder: dir, TS: a.reply.TS, Text: c.Text, Files: c.Files}, a.it.download)
}

// maxNamedParts is how many parts of a message are named to the thread.
const maxNamedParts = 5

// unreadableText says what of a message the agent was only told the names of; empty: nothing.
func unreadableText(missing []string) string {
	if len(missing) == 0 {
		return ""
	}
	names := strings.Join(missing[:min(len(missing), maxNamedParts)], ", ")
	if more := len(missing) - maxNamedParts; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return "The agent did not get all of this message, I cannot read: " + chat.Escape(names) + ". Write it as text."
}

// joinNonEmpty joins texts that are not empty, one below the other.
func joinNonEmpty(texts ...string) string {
	return strings.Join(slices.DeleteFunc(texts, func(text string) bool { return text == "" }), "\n")
}
