// Package registry keeps on disk what must outlive a process: the records of sessions, the locks on them, and who the
// bot of a state root is.
//
//	<root>/local/standing/<name>.json   one record a standing session
//	<root>/local/<slug>.json            one record a work item's session
//	<root>/deliveries/<ref>.json        the event deliveries to a work item
//	<root>/run/locks/<key>.lock         one file a lock, never removed
//	<root>/run/bot.lock, bot.json       the bot's lock, and what it last said of itself
//
// Package statefile writes them. Locks are flock locks: the kernel drops them with the process that holds them.
package registry
