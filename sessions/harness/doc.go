// Package harness is the set of the agent programs that sessions can run: the built-in ones, and those that the configuration
// describes by an argv. Each built-in agent has a package of its own below this one; only this package imports them.
//
// To add an agent, add its package, its line in [BuiltIns], and a test that runs the real program against a model on loopback
// (see harnesstest). The agents' facts were measured on the versions that testdata/agents pins. A screen that an agent does not
// know is a dialog: text is held then, rather than typed into it.
package harness
