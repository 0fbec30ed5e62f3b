// Package smallagent is the small agent that comes with the binary: a real terminal program that behaves like the
// coding agents people run, without a model behind it. It keeps a conversation, resumes it, asks for permission, loses
// an Enter that comes too soon, and writes down what it was sent, so that everything the product promises about typing
// into an agent can be tried and shown.
//
// # The screen
//
// A program that reads the screen can rely on the following, at 40×10 and larger; ParseScreen reads it.
//
//	small agent — type a message, Enter sends it; /help says more
//	you    hello
//	agent  Turn 1. You said (5 characters, 1 line): hello
//	                                             (a hint, or empty)
//	──────────────────────────────────────────── a rule
//	> the text in the box                        or the lines of a dialog
//	──────────────────────────────────────────── a rule
//	small agent · ready · <conversation id>      always the last line
//
// Only the box begins a line with ">", only a rule with "─", only the last line with "small agent ·". The state is
// starting, ready, working or asking. While it asks, the dialog takes the place of the box, and a draft comes back
// after it. A paste that has a line feed or more than MaxInlinePaste characters is shown as
// "[Pasted text #1 +N lines]" or "[Pasted text #1 +N characters]"; other text is wrapped over at most MaxBoxRows rows, the
// last of which ends in "…" when there is more. Shown says how a paste looks.
//
// # Keys
//
// Enter (CR) submits, outside of a paste; so does C-x C-y, which does nothing in a dialog. LF (C-j) is a new line.
// Backspace, C-w, C-u, the arrows, Home and End edit; C-s puts the draft aside until after the next submit. Escape
// interrupts a turn. C-c twice in a row, C-d on an empty box, "exit" and "quit" end it. While it works, what is
// submitted is recorded at once, in the conversation of that moment, and waits for its turn. A CR that comes before the
// agent has made its terminal raw arrives as a new line, as the terminal turns it into one.
//
// # Words
//
//	ask: TEXT    asks "Allow TEXT?" with "Yes" preselected: Enter approves, 2 or Escape denies, a paste is dropped
//	choose: TEXT asks TEXT with "This" and "That", of which neither is yes or no
//	choose: TEXT | A | B
//	             asks TEXT with options that its hook is told
//	plan: TEXT   asks for permission to carry out a plan
//	menu         opens a menu, which drops a paste too
//	slow: 2s     makes this turn take that long
//	say: TEXT    is answered with TEXT, whole; the screen shows the beginning of it
//	!TEXT        is a command for the shell: recorded as such, never run
//	/TEXT        is a command of the agent, also after leading blanks: /help, /clear (a new conversation id)
//
// # Hook
//
// With --hook COMMAND the shell runs it for each question (ask and choose, not menu), with JSON on its standard input:
// {"hook_event_name":"PermissionRequest","session_id":…,"cwd":…,"tool_name":"Shell","tool_input":{"command":TEXT}}; of a
// choice the tool is AskUserQuestion and the input {"question":TEXT}, or with options as Claude Code has them, and an answer is taken
// from "updatedInput"; of a plan the tool is ExitPlanMode and the input {"plan":TEXT}. The dialog stays usable meanwhile. When the command
// prints {"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"allow"}}}, or "deny" with a
// "message", that answers it; else nothing does. Answered in the terminal, or at the agent's end, its group gets a TERM;
// with --leave-hook it is left alone, and only the agent's end closes its output, as with Claude Code.
//
// # Files
//
// DIR/ID.jsonl is the record of a conversation (Entry), DIR/ID.bytes with --log-bytes what came from the terminal.
package smallagent
