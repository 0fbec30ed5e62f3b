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
	cmd     *exec.Cmd
	answers chan hookAnswer // one, when it has ended
}

// hookAnswer is what a hook printed, as Claude Code's hooks print it. The zero answer is none.
type hookAnswer struct {
	Behavior string `json:"behavior"` // allow or deny
	Message  string `json:"message"`  // why it was denied
}

// hookInput is what a hook reads, as Claude Code's hooks read it.
type hookInput struct {
	Event        string            `json:"hook_event_name"`
	Conversation string            `json:"session_id"`
	Cwd          string            `json:"cwd"`
	Tool         string            `json:"tool_name"`
	Input        map[string]string `json:"tool_input"`
}

// startHook has the shell run the command line, in a process group of its own.
func startHook(line string, in hookInput) (*hook, error) {
	data, err := json.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("start the hook: %w", err)
	}
	h := &hook{cmd: exec.Command("/bin/sh", "-c", line), answers: make(chan hookAnswer, 1)}
	var out bytes.Buffer
	h.cmd.Stdin, h.cmd.Stdout = bytes.NewReader(data), &out
	h.cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	if err := h.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the hook: %w", err)
	}
	go func() {
		_ = h.cmd.Wait() // a hook that fails says nothing
		h.answers <- readHookAnswer(out.Bytes())
	}()
	return h, nil
}

func readHookAnswer(printed []byte) hookAnswer {
	var said struct {
		Output struct {
			Decision hookAnswer `json:"decision"`
		} `json:"hookSpecificOutput"`
	}
	if json.Unmarshal(printed, &said) != nil {
		return hookAnswer{}
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
	case <-h.answers:
	case <-time.After(hookGrace):
		_ = unix.Kill(-h.cmd.Process.Pid, unix.SIGKILL)
		<-h.answers
	}
}

// hookGrace is how long a hook may take to end.
const hookGrace = time.Second

// ask starts the hook for a question, where there is one.
func (a *agent) ask(d *dialog) {
	if a.opts.hook == "" || d.menu {
		return
	}
	in := hookInput{Event: "PermissionRequest", Conversation: a.conv.id, Cwd: a.opts.cwd, Tool: "Shell", Input: map[string]string{"command": d.what}}
	if d.choice {
		in.Tool, in.Input = "AskUserQuestion", map[string]string{"question": d.what}
	}
	var err error
	if a.hook, err = startHook(a.opts.hook, in); err != nil {
		a.say("note", err.Error())
	}
}

// hookAnswers is where the hook's answer comes from; nil while none runs.
func (a *agent) hookAnswers() <-chan hookAnswer {
	if a.hook == nil {
		return nil
	}
	return a.hook.answers
}

// hooked obeys what a hook answered. One that says nothing leaves the question to the terminal.
func (a *agent) hooked(said hookAnswer) {
	a.hook = nil
	if a.dialog == nil {
		return
	}
	switch said.Behavior {
	case "allow":
		a.settle(0, HowHook, "")
	case "deny":
		a.settle(-1, HowHook, said.Message)
	}
}
