// Package bot is the Slack surface: it turns what Slack sends into what packages threads and sessions understand, and
// what they say into messages.
//
// The files, bottom-up: wire.go is the HTTP client that everything shares; errors.go sorts what can go wrong; client.go
// reads and writes threads (it is threads.History, threads.Receipts and threads.Speaker); loose.go decodes JSON
// leniently; people.go knows who is who; richtext.go and text.go turn a message into what its author typed; fetch.go
// fetches the files in it; inbound.go routes envelopes and message.go reads the messages in them; doors.go judges who
// presses buttons and gives commands. Behind the doors, verbs.go does what they ask of the core, and limits.go says
// what may be created; words.go reads commands, slash.go answers the slash command and commander.go the mentions in
// threads; buttons.go is the buttons and the shortcut, create.go the form, asks.go the questions of agents, carry.go posts
// files, modals.go and views.go open and fill modals,
// home.go is the Home tab. announcer.go keeps Slack in line with the sessions, listener.go hears what agents say
// (listener_watch.go is told by the system when there is something), answers.go makes messages of it, and status.go shows that
// they work; rotation.go tells the channel of sessions that run on a stale environment and restarts them, as rotation_state.go
// remembers. socket.go keeps a Socket Mode connection, link.go is one of them, and queue.go is
// the line between it and the rest; surface.go is the table of what the app uses of Slack, from which manifest.go
// writes the app's manifest; check.go tries it all out; bot.go puts it together.
//
// Nothing here trusts a parsed struct of the Slack library for what people write: one malformed block would make it
// refuse a whole page or event, so messages are read from the raw JSON.
package bot
