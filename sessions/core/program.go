package core

import (
	"fmt"
	"os"

	"the-loop/sessions"
)

// checkProgram refuses a harness whose program is not there, before anything is changed: a restart must not take an agent
// down that it cannot bring up again.
func (r *launcher) checkProgram(def sessions.Definition) error {
	cmd, err := r.harness.Command(sessions.Launch{Conversation: newID(), Args: def.HarnessArgs, Cwd: def.Cwd, Prompt: r.prompt})
	if err != nil {
		return err
	}
	if len(cmd.Argv) == 0 {
		return fmt.Errorf("the harness %s names no program", r.harness.Name())
	}
	name, path := cmd.Argv[0], r.cfg.paneEnvironment(sessions.Record{}, r.declared, cmd.Env)["PATH"]
	if path == "" {
		path = os.Getenv("PATH") // what our tmux server has
	}
	refusal := &sessions.Refusal{Cause: sessions.ErrRefused, Remedy: fmt.Sprintf("install it, or say under harnesses.%s.binary where it is", r.harness.Name())}
	switch program, found := sessions.FindProgram(name, path, def.Cwd); {
	case found:
		return nil
	case program != "":
		refusal.What = program + " is not a program that can be run"
	default:
		refusal.What = fmt.Sprintf("there is no program %s on the session's PATH (%s)", name, path)
	}
	return refusal
}
