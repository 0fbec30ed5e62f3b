package main

import (
	"strings"
	"testing"
)

// What a new command may do from an agent's pane has to be decided: without a word it is refused there.
func TestAgentsMayCallTheseCommandsAndNoOthers(t *testing.T) {
	t.Parallel()
	free := map[string]bool{"version": true, "demo": true, "config schema": true, "small-agent": true, "report": true,
		"report say": true, "report file": true, "report hook": true}
	for _, cmd := range allCommands(newRootCommand(environment{})) {
		name := strings.TrimPrefix(cmd.CommandPath(), "the-loop ")
		if got := isAllowedForAgents(cmd); got != free[name] {
			t.Errorf("%q is for agents: %v", name, got)
		}
	}
}

func TestTheBotIsStartedWithoutSessionVariables(t *testing.T) {
	t.Parallel()
	got := withoutSessionVariables([]string{"A=1", "THE_LOOP_SESSION=x", "THE_LOOP_INSTANCE=/r", "THE_LOOP_CLI_CONFIG=/c"})
	if strings.Join(got, " ") != "A=1 THE_LOOP_CLI_CONFIG=/c" {
		t.Errorf("%q", got)
	}
}
