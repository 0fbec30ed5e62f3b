package main

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

// demoEnvVariable is what the demo's env file declares, beside what the operator's own does.
const demoEnvVariable = "DEMO_API_KEY"

// writeConfig writes the demo's configuration, its env file and the folder that the agent works in. What it needs of the
// operator's own configuration is a harness that is not built in, and the credentials of one that is.
func (d *liveDemo) writeConfig(c *cli) (path string, err error) {
	work := filepath.Join(d.dir, "work")
	if err := os.Mkdir(work, 0o700); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(work, "README.md"), []byte("# A folder to play in\n\nIt is removed with the demo.\n"), 0o600); err != nil {
		return "", err
	}
	theirs, err := d.operatorConfig(c)
	if err != nil {
		return "", err
	}
	if err := d.writeEnv(theirs); err != nil {
		return "", err
	}
	text, err := yaml.Marshal(d.buildConfig(work, theirs))
	if err != nil {
		return "", fmt.Errorf("write the demo's configuration: %w", err)
	}
	path = filepath.Join(d.dir, "cli-config.yaml")
	return path, os.WriteFile(path, text, 0o600)
}

// operatorConfig is the operator's own configuration, when the harness is not the small agent and there is one.
func (d *liveDemo) operatorConfig(c *cli) (*config.Config, error) {
	builtIn := slices.Contains(builtinHarnessNames(), d.options.harness)
	if d.options.harness == smallagent.Name {
		return &config.Config{}, nil
	}
	cfg, _, err := c.loadConfig()
	switch {
	case errors.Is(err, config.ErrNotFound) && builtIn:
		return &config.Config{}, nil
	case errors.Is(err, config.ErrNotFound):
		return nil, usageError(fmt.Errorf("unknown harness %s: it is not built in, and there is no configuration", d.options.harness))
	case err != nil:
		return nil, err
	case !builtIn && cfg.Harnesses[d.options.harness].Args == nil:
		return nil, usageError(fmt.Errorf("unknown harness %s: it is not built in, and %s does not describe it", d.options.harness, cfg.Path))
	}
	return cfg, nil
}

// buildConfig is the demo's configuration, as an operator would write it.
func (d *liveDemo) buildConfig(work string, theirs *config.Config) map[string]any {
	routing := map[string]any{"defaultHarness": d.options.harness, "spawnWorkdir": work}
	if d.options.harness == smallagent.Name {
		routing["tmux"] = map[string]any{"harnessKillGraceSeconds": 1}
	}
	if args, given := theirs.Routing.HarnessArgs[d.options.harness]; given {
		routing["harnessArgs"] = map[string]any{d.options.harness: args}
	}
	cfg := map[string]any{"version": 1, "env": map[string]any{"file": "agents.env"}, "routing": routing,
		"standingSessions": map[string]any{"enabled": true, "sessions": []any{
			map[string]any{"name": demoRef.Name(), "description": "An agent to play with: " + d.options.harness}}},
		"channels": map[string]any{"slack": map[string]any{"enabled": true, "channel": d.channel, "authorizedUsers": []string{d.ann.ID},
			"apiUrl": d.slack.APIURL(), "allowSharedChannels": true, "command": demoCommandName}}}
	if h, described := theirs.Harnesses[d.options.harness]; described {
		cfg["harnesses"] = map[string]any{d.options.harness: harnessEntry(h)}
	}
	return cfg
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

func (d *liveDemo) envFile() string { return filepath.Join(d.dir, "agents.env") }

// writeEnv makes the demo's env file: a copy of the operator's own, which the demo never changes, and a key of the demo's.
func (d *liveDemo) writeEnv(theirs *config.Config) error {
	var own []byte
	if theirs.EnvFile != "" {
		data, err := os.ReadFile(theirs.EnvFile)
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

// rotateKey writes the env file with another key, as whoever hands out credentials does.
func (d *liveDemo) rotateKey() error {
	own, err := os.ReadFile(filepath.Join(d.dir, "own.env"))
	if err != nil {
		return err
	}
	half := d.envFile() + ".new"
	if err := os.WriteFile(half, fmt.Appendf(own, "%s=demo-%s\n", demoEnvVariable, randomHex(12)), 0o600); err != nil {
		return err
	}
	return os.Rename(half, d.envFile())
}
