package core

import (
	"fmt"
	"maps"
	"time"

	"the-loop/sessions"
)

// Config is what the configuration says of sessions.
type Config struct {
	Enabled      bool // standingSessions.enabled
	Declared     []sessions.Definition
	RemainOnExit bool
	Resume       bool                             // resumeOnRespawn
	Probe        time.Duration                    // a resumed agent that dies within it could not resume
	KillGrace    time.Duration                    // between TERM and KILL
	Env          func() (sessions.EnvFile, error) // the env file as it is now; nil: none is configured
	OwnEnv       map[string]string                // the product's own names; they win over Env
	ChatService  string                           // the name of the chat service in which sessions have threads; empty: there is none
	Program      string                           // a path of this program that stays, for agents to run; empty: agents do not get one
	Defaults     sessions.Defaults
}

// findDeclared returns the declared definition of ref and its position in the configuration; -1: it is not declared.
func (cfg Config) findDeclared(ref sessions.Ref) (sessions.Definition, int) {
	for i, d := range cfg.Declared {
		if sessions.StandingRef(d.Name) == ref {
			return d.Clone(), i
		}
	}
	return sessions.Definition{}, -1
}

// declaredKey is the configuration key of the declared session at that position.
func declaredKey(i int) string { return fmt.Sprintf("standingSessions.sessions[%d]", i) }

// readEnvFile reads what the env file declares now.
func (cfg Config) readEnvFile() (sessions.EnvFile, error) {
	if cfg.Env == nil {
		return sessions.EnvFile{}, nil
	}
	env, err := cfg.Env()
	if err != nil {
		return sessions.EnvFile{}, fmt.Errorf("read the env file: %w", err)
	}
	return env, nil
}

// paneEnvironment is the environment that a pane of the session starts with: declared, then the harness's, then the product's
// own.
func (cfg Config) paneEnvironment(r sessions.Record, declared, harness map[string]string) map[string]string {
	own := map[string]string{sessions.SessionVariable: r.ID}
	if r.Ref.Kind() == sessions.KindWorkItem {
		own["THE_LOOP_WORK_ITEM"] = string(r.Ref)
	}
	env := map[string]string{}
	for _, m := range []map[string]string{declared, harness, cfg.OwnEnv, own} {
		maps.Copy(env, m)
	}
	return env
}
