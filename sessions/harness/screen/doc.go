// Package screen has what reading the agents' screens has in common.
package screen
