// Package harness knows the agent programs: how each is started and resumed, which texts it would take as commands, what
// its screen says, and what proves that it took a text. Each file is one program; [Set] finds them by name.
//
// template.go is any program that the configuration describes by an argv; smallagent.go is the agent that comes with the
// binary.
package harness
