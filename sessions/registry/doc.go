// Package registry keeps on disk what must outlive a process: the records of sessions, the locks on them, and who the
// bot of a state root is.
//
//	<root>/local/standing/<name>.json   one record a standing session
//	<root>/local/<slug>.json            one record a work item's session
//	<root>/deliveries/<ref>.json        which deliveries a work item has had
//	<root>/run/locks/<key>.lock         one file a lock, never removed
//	<root>/run/bot.lock, bot.json       the bot's lock, and what it last said of itself
//
// Files are 0600 and folders 0700; they are made when they are first needed. A record is replaced whole: a temporary
// file beside it is written and synced, renamed over it, and the folder synced, so that a reader or a crash at any moment
// finds the old one or the new one. Locks are flock locks: the kernel drops them with the process that holds them.
package registry
