package sessions

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// NotRunning is the refusal of every verb that needs a live session.
func NotRunning(ref Ref) error {
	return &Refusal{Cause: ErrNotRunning, What: fmt.Sprintf("%s is not running", ref), Remedy: ref.StartCommand()}
}

// Replaced is the refusal of a request that was meant for a session that had the ref before.
func Replaced(ref Ref) error {
	return &Refusal{Cause: ErrReplaced, What: fmt.Sprintf("the %s that this was for was deleted, and another session has its name", ref),
		Remedy: "repeat it for the new one"}
}

// NotRecorded is the refusal of a ref that is neither declared nor recorded.
func NotRecorded(ref Ref) error {
	remedy := "the-loop standing list shows those there are"
	if ref.Kind() == KindWorkItem {
		remedy = "the-loop sessions register " + string(ref) + " makes one"
	}
	return &Refusal{Cause: ErrNotRecorded, What: fmt.Sprintf("there is no session %s", ref), Remedy: remedy}
}

// WrapTerminalError names the session in an error of its pane. An agent that ended or a pane that is gone is a [*Refusal] because of
// [ErrNotRunning].
func WrapTerminalError(rec Record, err error) error {
	switch {
	case errors.Is(err, ErrPaneDead):
		return &Refusal{Cause: fmt.Errorf("%w: %w", ErrNotRunning, err), What: fmt.Sprintf("the agent of %s has ended", rec.Ref),
			Remedy: rec.Ref.StartCommand()}
	case errors.Is(err, ErrPaneGone):
		return &Refusal{Cause: fmt.Errorf("%w: %w", ErrNotRunning, err), What: fmt.Sprintf("%s is not running", rec.Ref),
			Remedy: rec.Ref.StartCommand()}
	}
	return fmt.Errorf("%s: %w", rec.Ref, err)
}

// DeclaredConflict is the refusal of a session that is created and declared.
func DeclaredConflict(ref Ref) error {
	return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("%s was created and is now declared in the config too", ref),
		Remedy: "give one of them another name, or take it out of the config and delete it"}
}

// CheckFolder refuses a folder in which no agent can be started.
func CheckFolder(dir string) error {
	if !filepath.IsAbs(dir) { // it starts at the current folder, which was removed
		return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("the folder %q starts at the current one, which is not there any more", dir),
			Remedy: "go to another folder, or name an absolute one (cwd, routing.spawnWorkdir)"}
	}
	info, err := os.Stat(dir)
	switch {
	case err != nil:
		return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("the folder %s cannot be used: %v", dir, err),
			Remedy: "make it, or change cwd"}
	case !info.IsDir():
		return &Refusal{Cause: ErrRefused, What: dir + " is not a folder", Remedy: "change cwd"}
	}
	return nil
}

// CheckConversation refuses the id of a conversation that can never be resumed. An empty id stands for a new conversation.
func CheckConversation(h Harness, id string) error {
	switch {
	case id == "":
		return nil
	case !ValidConversation(id):
		return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("%q does not have the shape of a conversation's id", id),
			Remedy: "use one that matches " + ConversationPattern().String()}
	case !h.Capabilities().CanResume:
		return &Refusal{Cause: ErrCannotResume, What: fmt.Sprintf("%s has no way to resume a conversation", h.Name()), Remedy: "leave its id out"}
	}
	return nil
}

// InvalidName is the refusal of a name that no session can have.
func InvalidName(name string) error {
	return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("%q cannot name a session", name), Remedy: fmt.Sprintf("use one that matches %s", NamePattern())}
}

// NameDeclared is the refusal to create a session that is declared under that key of the configuration.
func NameDeclared(ref Ref, key string) error {
	return &Refusal{Cause: ErrNameTaken, What: fmt.Sprintf("%s is declared in the config (%s)", ref, key),
		Remedy: "the-loop standing start " + ref.Name() + " starts it; a new one needs another name"}
}

// NameRecorded is the refusal to create or register a session that there is already.
func NameRecorded(ref Ref) error {
	if ref.Kind() == KindWorkItem {
		return &Refusal{Cause: ErrNameTaken, What: fmt.Sprintf("%s is registered already", ref),
			Remedy: "close it first: the-loop sessions close " + string(ref)}
	}
	return &Refusal{Cause: ErrNameTaken, What: fmt.Sprintf("there is a session %s already", ref),
		Remedy: "delete it first (the-loop standing delete " + ref.Name() + "), or use another name"}
}

// DeleteDeclared is the refusal to delete a session that is declared under that key of the configuration.
func DeleteDeclared(ref Ref, key string) error {
	return &Refusal{Cause: ErrRefused, What: fmt.Sprintf("%s is declared in the config (%s), which would make it again", ref, key),
		Remedy: "take it out of there first, or stop it: the-loop standing stop " + ref.Name()}
}

// NameOccupied is the refusal to start a session while somebody else's tmux session has its name. attach is the argv that shows it.
func NameOccupied(ref Ref, p Pane, attach []string) error {
	return &Refusal{Cause: ErrNameTaken, What: fmt.Sprintf("a tmux session %q is there that does not belong to %s (pane %s)", p.SessionName, ref, p.ID),
		Remedy: fmt.Sprintf("look at it (%s), then rename it or end it, and start again", strings.Join(attach, " "))}
}

// CheckResumable returns why the conversation of a record cannot be resumed by a harness, as far as that is known without trying.
func CheckResumable(r Record, h Harness) error {
	switch {
	case r.Conversation == "":
		return errors.New("none is recorded")
	case !ValidConversation(r.Conversation):
		return errors.New("the recorded id does not have the shape of one")
	case r.Definition.Harness != h.Name():
		return fmt.Errorf("it belongs to the harness %s", r.Definition.Harness)
	case !h.Capabilities().CanResume:
		return fmt.Errorf("%s has no way to resume", h.Name())
	}
	return nil
}
