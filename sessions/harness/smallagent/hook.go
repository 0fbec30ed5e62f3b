package smallagent

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// hook is a running --hook: it was told what is asked, and may answer.
type hook struct {
	cmd       *exec.Cmd
	decisions chan hookDecision // one, when it has ended
}

// hookDecision is what a hook printed, as Claude Code's hooks print it. The zero answer is none.
type hookDecision struct {
	Behavior string `json:"behavior"` // allow or deny
	Message  string `json:"message"`  // why it was denied
	Input    struct {
		Answers map[string]string `json:"answers"` // by the text of the question
	} `json:"updatedInput"`
	Permissions []struct {
		Mode string `json:"mode"`
	} `json:"updatedPermissions"`
}

// hookInput is what a hook reads, as Claude Code's hooks read it.
type hookInput struct {
	Event        string `json:"hook_event_name"`
	Conversation string `json:"session_id"`
	Cwd          string `json:"cwd"`
	Tool         string `json:"tool_name"`
	Input        any    `json:"tool_input"`
}

// startHook has the shell run the command line, in a process group of its own.
func startHook(line string, in hookInput) (*hook, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("start the hook: %w", err)
	}
	h := &hook{cmd: exec.Command("/bin/sh", "-c", line), decisions: make(chan hookDecision, 1)}
	var out bytes.Buffer
	h.cmd.Stdin, h.cmd.Stdout = bytes.NewReader(data), &out
	h.cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := h.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the hook: %w", err)
	}
	go func() {
		_ = h.cmd.Wait() // a hook that fails says nothing
		h.decisions <- parseHookDecision(out.Bytes())
	}()
	return h, nil
}

func parseHookDecision(printed []byte) hookDecision {
	var said struct {
		Output struct {
			Decision hookDecision `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	if json.Unmarshal(printed, &said) != nil {
		return hookDecision{}
	}
	return said.Output.Decision
}

// end asks it to end, when it is not waited for any more, and waits for that.
func (h *hook) end() {
	if h == nil {
		return
	}
	_ = unix.Kill(-h.cmd.Process.Pid, unix.SIGTERM) // it may have ended
	select {
	case <-h.decisions:
	case <-time.After(hookGrace):
		_ = unix.Kill(-h.cmd.Process.Pid, unix.SIGKILL)
		<-h.decisions
	}
}

// hookGrace is how long a hook may take to end.
const hookGrace = time.Second

// startHook starts the hook for a question, where there is one.
func (a *agent) startHook(d *dialog) {
	if a.opts.hook == "" || d.isMenu {
		return
	}
	in := hookInput{Event: "PermissionRequest", Conversation: a.conv.id, Cwd: a.opts.cwd, Tool: "Shell", Input: map[string]string{"command": d.subject}}
	switch {
	case d.hasOptions:
		in.Tool, in.Input = "AskUserQuestion", questionsInput(d)
	case d.isChoice:
		in.Tool, in.Input = "AskUserQuestion", map[string]string{"question": d.subject}
	case d.plan != "":
		in.Tool, in.Input = "ExitPlanMode", map[string]string{"plan": d.plan}
	}
	var err error
	if a.hook, err = startHook(a.opts.hook, in); err != nil {
		a.show("note", err.Error())
	}
}

// questionsInput is a question as Claude Code's hooks read it.
func questionsInput(d *dialog) any {
	var options []map[string]string
	for _, choice := range d.choices {
		options = append(options, map[string]string{"label": choice, "description": "the option " + choice})
	}
	return map[string]any{"questions": []any{map[string]any{"question": d.title, "header": "Question", "multiSelect": false, "options": options}}}
}

// hookDecisions is where the hook's answer comes from; nil while none runs.
func (a *agent) hookDecisions() <-chan hookDecision {
	if a.hook == nil {
		return nil
	}
	return a.hook.decisions
}

// handleHookDecision obeys what a hook answered. One that says nothing leaves the question to the terminal.
func (a *agent) handleHookDecision(said hookDecision) {
	a.hook = nil
	if a.dialog == nil {
		return
	}
	switch said.Behavior {
	case "allow":
		why := said.Input.Answers[a.dialog.title]
		for _, p := range said.Permissions {
			why = p.Mode
		}
		a.closeDialog(0, HowHook, why)
	case "deny":
		a.closeDialog(-1, HowHook, said.Message)
	}
}
