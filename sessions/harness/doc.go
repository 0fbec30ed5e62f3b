// Package harness knows the agent programs: how each is started and resumed, what it must find before an unattended start,
// which texts it would take as commands, what its screen says, and what proves that it took a text. Each family of files is
// one program; [Set] finds them by name, [BuiltIns] are those that are known.
//
// claude*.go is Claude Code, codex*.go, gemini*.go and opencode*.go are what they say, cursor.go says why it is not one of
// them. smallagent.go is the agent that comes with the binary, template.go any program that the configuration describes by an
// argv.
//
// reports.go is what agents tell through hooks: a line in a file of their session, which needs no running bot. noted.go reads
// what concerns others there, whatever the harness; ask*.go are questions that a hook waits for the answer to.
// processes.go finds the processes of a pane by their environment, jsonedit.go changes one member of somebody else's JSON.
//
// The facts in it were measured on the versions that testdata/agents pins; the real programs are tried against a model on
// loopback (real*_test.go, harnesstest). A screen that is not known is read as a dialog: text is held then, rather than typed into it.
package harness
