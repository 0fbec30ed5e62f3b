package sessions

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"al.essio.dev/pkg/shellescape"
)

// BootPrompt is the first message of a new conversation: what the session must know of itself, then the operator's brief. chatService
// is the name of the service in which sessions have threads, program a path of this program that stays; both may be empty.
func BootPrompt(d Definition, chatService, program string) (string, error) {
	brief := d.Prompt
	if d.PromptFile != "" {
		var err error
		if brief, err = readPrompt(d.PromptFile); err != nil {
			return "", &Refusal{Cause: ErrRefused, What: fmt.Sprintf("the promptFile %s cannot be read: %v", d.PromptFile, err),
				Remedy: "fix the file or change promptFile"}
		}
	}
	directive := identityText(d) + " Your operator speaks to you in this terminal"
	inChat := chatService != "" && d.Chat.Enabled
	if inChat {
		directive += ", in your " + chatService + " thread"
	}
	directive += " and through the-loop's own commands; what arrives here as a message comes from them."
	if inChat && program != "" {
		directive += fmt.Sprintf(" To show them a file of your folder in the thread, run: %s report file PATH --comment TEXT", shellescape.Quote(program))
	}
	if brief = strings.TrimSpace(Clean(brief)); brief == "" {
		return directive, nil
	}
	return directive + "\n\n" + brief, nil
}

func identityText(d Definition) string {
	if d.Source == SourceRegistered {
		return fmt.Sprintf("You are the session of the work item %s. What happens to it arrives here as a message.", d.Ref())
	}
	return fmt.Sprintf("You are the standing session %q of the-loop. You own no work item. Never answer a "+
		"phase-selection gate and never post a control keyword on any ticket.", d.Name)
}

// maxPrompt is the longest brief in bytes: an argument of a program has at most 128 KiB on Linux.
const maxPrompt = 128 << 10

// readPrompt reads a regular file. It waits for no pipe.
func readPrompt(path string) (string, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", withoutPath(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", withoutPath(err)
	case !info.Mode().IsRegular():
		return "", errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, maxPrompt+1))
	switch {
	case err != nil:
		return "", withoutPath(err)
	case len(data) > maxPrompt:
		return "", fmt.Errorf("it is longer than %d bytes", maxPrompt)
	}
	return string(data), nil
}

// withoutPath drops the path from an error: the sentence around it has it already.
func withoutPath(err error) error {
	var named *os.PathError
	if errors.As(err, &named) {
		return named.Err
	}
	return err
}
