package localslack

// changeKind says what a change is about.
type changeKind string

const (
	messageChanged   changeKind = "message"   // posted, edited, deleted, or its reactions or replies changed
	ephemeralChanged changeKind = "ephemeral" // of one member
	viewsChanged     changeKind = "views"     // the modals that a member has open
	homeChanged      changeKind = "home"      // a member's Home tab
	statusChanged    changeKind = "status"    // the assistant's status in a thread
	directoryChanged changeKind = "places"    // who there is, which channels there are and who is in them
)

// change names something that is not what it was: whoever shows it reads it anew.
type change struct {
	kind    changeKind
	channel string
	ts      string // of the message, or of the thread's root
	user    string // who sees it, when only one member does
}

// journalLength is how many changes are kept: who has missed more reads everything anew.
const journalLength = 8192

// recordChange notes a change. The caller holds mu, and notifies.
func (w *Base) recordChange(c change) {
	w.journal.add(func(int) change { return c })
}

// recordMessageChange notes that a message changed, and with it what its thread's root tells of the replies.
func (w *Base) recordMessageChange(ch *channelState, m *Message) {
	w.recordChange(change{kind: messageChanged, channel: ch.id, ts: m.TS})
	if m.IsReply() {
		w.recordChange(change{kind: messageChanged, channel: ch.id, ts: m.ThreadTS})
	}
}

// changesSince returns what changed after a place in the journal, each thing once, and the place to go on from. whole is
// false when more changed than is kept. The caller holds mu.
func (w *Base) changesSince(seq int) (changes []change, next int, whole bool) {
	next = w.journal.last
	all := w.journal.since(seq)
	if seq > next || len(all) != next-seq {
		return nil, next, false
	}
	seen := map[change]bool{}
	for _, c := range all {
		if !seen[c] {
			seen[c] = true
			changes = append(changes, c)
		}
	}
	return changes, next, true
}
