package config

import (
	"strings"
	"testing"
	"time"
)

func TestR4_1_R4_2_RespawnsAreConfigurableAndResumeByDefault(t *testing.T) {
	t.Parallel()
	for yaml, want := range map[string]struct {
		resume bool
		probe  time.Duration
	}{
		"version: 1\n": {true, 2 * time.Second},
		"version: 1\nrouting: {tmux: {resumeOnRespawn: false, resumeProbeSeconds: 0}}\n": {false, 0},
		"version: 1\nrouting: {tmux: {resumeProbeSeconds: 0.5}}\n":                       {true, 500 * time.Millisecond},
	} {
		got := mustParse(t, yaml).SessionsConfig(nil, func(string) string { return "" })
		if got.Resume != want.resume || got.Probe != want.probe {
			t.Errorf("%q: resume %t, probe %s", yaml, got.Resume, got.Probe)
		}
	}
	for _, value := range []string{"resumeOnRespawn: \"no\"", "resumeProbeSeconds: -1", "resumeProbeSeconds: 61", "resumeProbeSeconds: soon"} {
		key, _, _ := strings.Cut(value, ":")
		_, err := parseText("version: 1\nrouting: {tmux: {" + value + "}}\n")
		if err == nil || !strings.Contains(err.Error(), "routing.tmux."+key) {
			t.Errorf("%s: %v", value, err)
		}
	}
}
