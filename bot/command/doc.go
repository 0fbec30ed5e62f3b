// Package command has the commands that members give in Slack. One table holds every verb: its name, its arguments, its help, who
// may use it and what it does. The slash command, the mentions in threads, the help texts and the completions are made from it.
package command
