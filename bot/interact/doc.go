// Package interact handles what members do in Slack other than writing messages: slash commands, buttons, modals, shortcuts and the Home
// tab.
package interact
