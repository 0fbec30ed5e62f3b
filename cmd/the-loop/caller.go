package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"the-loop/cmd/internal/config"
	"the-loop/sessions"
	"the-loop/sessions/envstate"
	"the-loop/sessions/registry"
	"the-loop/sessions/tmux"
)

// What every pane is given, and so all that runs in it.
const (
	sessionVariable  = "THE_LOOP_SESSION"  // Record.ID
	instanceVariable = "THE_LOOP_INSTANCE" // the state root
)

// caller is where this program was called: in the pane of an agent, by it or by what it started, or elsewhere.
type caller struct {
	sessionID string // Record.ID; empty: no agent called
	stateRoot string // of its state; empty: not known
}

// findCaller finds the caller by its ancestors and by the leaders of their sessions, which are the processes of panes: what a
// program says of itself does not count. A pane without our mark in an agent's tmux session is its operator's, who attached and
// made it, also where the agent's environment came along. What has that environment and is in no such pane was started by the
// agent, wherever it has gone: into the background, or into a tmux server of its own. When tmux does not answer, that counts too.
func (c *cli) findCaller(ctx context.Context) (caller, error) {
	if c.env.pid == 0 {
		return caller{}, nil
	}
	l, err := tmux.LineageOf(ctx, c.env.pid)
	if err != nil {
		return caller{}, err
	}
	given, sockets := callerFromEnviron(ctx, l)
	if !l.MayBeInPane && given.sessionID == "" {
		return caller{}, nil
	}
	return c.callerFromPane(ctx, l, given, sockets)
}

// callerFromEnviron is what the farthest process of a lineage that was given a session was given, since those below it may have changed
// theirs, and the tmux servers that they name.
func callerFromEnviron(ctx context.Context, l tmux.Lineage) (given caller, sockets []string) {
	for _, pid := range l.PIDs {
		env, _ := envstate.ProcessEnviron(ctx, pid)
		if env[sessionVariable] != "" {
			given = caller{sessionID: env[sessionVariable], stateRoot: env[instanceVariable]}
		}
		if socket := tmux.SocketOf(env["TMUX"]); socket != "" {
			sockets = append(sockets, socket)
		}
	}
	return given, sockets
}

// callerFromPane asks the tmux servers whose pane it is.
func (c *cli) callerFromPane(ctx context.Context, l tmux.Lineage, given caller, sockets []string) (caller, error) {
	servers := make([]tmux.Options, 0, len(sockets)+1)
	for _, socket := range sockets {
		servers = append(servers, tmux.Options{SocketPath: socket, Dir: os.TempDir()})
	}
	if cfg := c.loadPartialConfig(); cfg != nil { // a program may have written over its environment
		servers = append(servers, tmux.Options{SocketName: cfg.Routing.Tmux.SocketName, Dir: os.TempDir()})
	}
	for _, o := range servers {
		t, err := tmux.New(o)
		if err != nil {
			continue
		}
		pane, found, err := t.FindEnclosingPane(ctx, l)
		switch {
		case err != nil && given.sessionID == "":
			return caller{}, fmt.Errorf("check whether an agent runs this command: %w", err)
		case err != nil:
			return given, nil
		case !found || pane.Mark == given.sessionID:
		case pane.Mark != "":
			return caller{sessionID: pane.Mark}, nil
		case pane.Owner == given.sessionID:
			return caller{}, nil
		}
	}
	return given, nil
}

// loadPartialConfig is the configuration, as far as it can be read; nil: there is none.
func (c *cli) loadPartialConfig() *config.Config {
	found, err := config.Find(c.configPath, c.env.getenv, c.env.workdir, c.env.home)
	if err != nil {
		return nil
	}
	cfg, _ := found.Loader(c.env.workdir, c.env.home).LoadPartial(found.Path)
	return cfg
}

// agentAnnotation is the annotation of a command that an agent may call: it reports for its own session, or tells and changes nothing.
const agentAnnotation = "the-loop.agents"

// allowAgents lets agents call a command and those below it.
func allowAgents(cmd *cobra.Command) *cobra.Command {
	cmd.Annotations = map[string]string{agentAnnotation: "true"}
	return cmd
}

// isAllowedForAgents reports a command that an agent may call. Help and completions, which cobra adds, are.
func isAllowedForAgents(cmd *cobra.Command) bool {
	for at := cmd; at != nil; at = at.Parent() {
		if at.Annotations[agentAnnotation] != "" || at.Name() == "help" || at.Name() == "completion" || at.Name() == cobra.ShellCompRequestCmd {
			return true
		}
	}
	return false
}

// checkCaller refuses what an agent, or what it has started, calls beside the commands that are for agents.
func (c *cli) checkCaller(cmd *cobra.Command) error {
	if cmd.HasSubCommands() || isAllowedForAgents(cmd) { // the first only prints its help
		return nil
	}
	who, err := c.findCaller(cmd.Context())
	if err != nil {
		return err
	}
	if who.sessionID == "" || c.isOtherInstance(cmd.Context(), who) {
		return nil
	}
	return &sessions.Refusal{Cause: sessions.ErrRefused,
		What:   fmt.Sprintf("agents may not run %s, and this is an agent's terminal (session %s)", cmd.CommandPath(), who.sessionID),
		Remedy: "agents may run the-loop report; as the operator, split the window or use another terminal"}
}

// isOtherInstance reports that the session belongs to another state root than the one that is meant: to another installation, or to
// none that is known.
func (c *cli) isOtherInstance(ctx context.Context, who caller) bool {
	cfg := c.loadPartialConfig()
	if cfg == nil || isSameFolder(cfg.StateRoot, who.stateRoot) {
		return false
	}
	records, _, err := registry.New(cfg.StateRoot).List(ctx)
	if err != nil {
		return false
	}
	for _, rec := range records {
		if rec.ID == who.sessionID {
			return false
		}
	}
	return true
}

func isSameFolder(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err1 := os.Stat(a)
	other, err2 := os.Stat(b)
	return errors.Join(err1, err2) == nil && os.SameFile(one, other)
}
