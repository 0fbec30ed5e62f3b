package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"gopkg.in/yaml.v3"

	"the-loop/cmd/internal/config"
	"the-loop/sessions/harness/smallagent"
)

// KeyVariable is the name that the demo's env file declares beside those of the operator's own.
const KeyVariable = "DEMO_API_KEY"

// writeConfig writes the demo's configuration, its env file and the agent's working folder. The operator's own configuration
// provides a harness that is not built in, and the credentials.
func (d *live) writeConfig() (path string, err error) {
	work := filepath.Join(d.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("# A folder to play in\n\nIt is removed with the demo.\n"), 0o600); err != nil {
		return "", err
	}
	operator, err := d.operatorConfig()
	if err != nil {
		return "", err
	}
	if err := d.writeEnv(operator); err != nil {
		return "", err
	}
	text, err := yaml.Marshal(d.buildConfig(work, operator))
	if err != nil {
		return "", fmt.Errorf("write the demo's configuration: %w", err)
	}
	path = filepath.Join(d.dir, "cli-config.yaml")
	return path, os.WriteFile(path, text, 0o600)
}

// operatorConfig is the operator's own configuration, when the harness is not the small agent and there is one.
func (d *live) operatorConfig() (*config.Config, error) {
	builtIn := slices.Contains(d.options.Host.Harnesses, d.options.Harness)
	if d.options.Harness == smallagent.Name {
		return &config.Config{}, nil
	}
	cfg, err := d.options.Host.OperatorConfig()
	switch {
	case errors.Is(err, config.ErrNotFound) && builtIn:
		return &config.Config{}, nil
	case errors.Is(err, config.ErrNotFound):
		return nil, fmt.Errorf("%w %s: it is not built in, and there is no configuration", ErrUnknownHarness, d.options.Harness)
	case err != nil:
		return nil, err
	case !builtIn && cfg.Harnesses[d.options.Harness].Args == nil:
		return nil, fmt.Errorf("%w %s: it is not built in, and %s does not describe it", ErrUnknownHarness, d.options.Harness, cfg.Path)
	}
	return cfg, nil
}

// buildConfig is the demo's configuration, as an operator would write it.
func (d *live) buildConfig(work string, operator *config.Config) map[string]any {
	routing := map[string]any{"defaultHarness": d.options.Harness, "spawnWorkdir": work}
	if d.options.Harness == smallagent.Name {
		routing["tmux"] = map[string]any{"harnessKillGraceSeconds": 1}
	}
	if args, given := operator.Routing.HarnessArgs[d.options.Harness]; given {
		routing["harnessArgs"] = map[string]any{d.options.Harness: args}
	}
	cfg := map[string]any{"version": 1, "env": map[string]any{"file": "agents.env", "pass": d.passedNames(operator)}, "routing": routing,
		"standingSessions": map[string]any{"enabled": true, "sessions": []any{
			map[string]any{"name": sessionRef.Name(), "description": "An agent to play with: " + d.options.Harness}}},
		"channels": map[string]any{"slack": map[string]any{"enabled": true, "channel": d.channel, "authorizedUsers": []string{d.ann.ID},
			"apiUrl": d.slack.APIURL(), "allowSharedChannels": true, "command": commandName}}}
	if h, described := operator.Harnesses[d.options.Harness]; described {
		cfg["harnesses"] = map[string]any{d.options.Harness: harnessEntry(h)}
	}
	return cfg
}

// passedNames returns the names of the variables that the agent gets from our own environment: those that the operator's
// configuration names, as far as they are set, and those that were asked for.
func (d *live) passedNames(operator *config.Config) []string {
	names := slices.Clone(d.options.EnvPass)
	for name := range operator.PassedEnv(d.options.Host.Getenv) {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(append([]string{}, names...))
}

func harnessEntry(h config.Harness) map[string]any {
	entry := map[string]any{"binary": h.Binary}
	if h.Args == nil { // another binary for a built-in one
		return entry
	}
	entry["args"], entry["submitDelayMs"] = h.Args, h.SubmitDelay.Milliseconds()
	if h.UsesReports {
		entry["reports"] = "program"
	}
	if h.ResumeArgs != nil {
		entry["resumeArgs"] = h.ResumeArgs
	}
	if h.CommandPrefixes != nil {
		entry["commandPrefixes"] = h.CommandPrefixes
	}
	return entry
}

func (d *live) envFile() string { return filepath.Join(d.dir, "agents.env") }

// writeEnv writes the demo's env file: a copy of the operator's own, which the demo never changes, and the demo's key.
func (d *live) writeEnv(operator *config.Config) error {
	var own []byte
	if operator.EnvFile != "" {
		data, err := os.ReadFile(operator.EnvFile)
		if err != nil {
			return fmt.Errorf("read the credentials: %w", err)
		}
		own = append(data, '\n')
	}
	if err := os.WriteFile(filepath.Join(d.dir, "own.env"), own, 0o600); err != nil {
		return err
	}
	return d.rotateKey()
}

// rotateKey writes the env file with another value for the demo's key.
func (d *live) rotateKey() error {
	own, err := os.ReadFile(filepath.Join(d.dir, "own.env"))
	if err != nil {
		return err
	}
	unfinished := d.envFile() + ".new"
	if err := os.WriteFile(unfinished, fmt.Appendf(own, "%s=demo-%s\n", KeyVariable, randomHex(12)), 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, d.envFile())
}
