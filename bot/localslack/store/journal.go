package store

// ChangeKind says what a change is about.
type ChangeKind string

const (
	MessageChanged   ChangeKind = "message"   // posted, edited, deleted, or its reactions or replies changed
	EphemeralChanged ChangeKind = "ephemeral" // of one member
	ViewsChanged     ChangeKind = "views"     // the modals that a member has open
	HomeChanged      ChangeKind = "home"      // a member's Home tab
	StatusChanged    ChangeKind = "status"    // the assistant's status in a thread
	DirectoryChanged ChangeKind = "places"    // who there is, which channels there are and who is in them
)

// Change names something that is not what it was: whoever shows it reads it anew.
type Change struct {
	Kind    ChangeKind
	Channel string
	TS      string // of the message, or of the thread's root
	User    string // who sees it, when only one member does
}

// JournalLength is how many changes are kept: who has missed more reads everything anew.
const JournalLength = 8192

// RecordChange notes a change. The caller holds Mu, and notifies.
func (w *Base) RecordChange(c Change) {
	w.Journal.add(func(int) Change { return c })
}

// RecordMessageChange notes that a message changed, and with it what its thread's root tells of the replies.
func (w *Base) RecordMessageChange(ch *ChannelState, m *Message) {
	w.RecordChange(Change{Kind: MessageChanged, Channel: ch.ID, TS: m.TS})
	if m.IsReply() {
		w.RecordChange(Change{Kind: MessageChanged, Channel: ch.ID, TS: m.ThreadTS})
	}
}

// ChangesSince returns what changed after a place in the journal, each thing once, and the place to go on from. whole is
// false when more changed than is kept. The caller holds Mu.
func (w *Base) ChangesSince(seq int) (changes []Change, next int, whole bool) {
	next = w.Journal.Last
	all := w.Journal.since(seq)
	if seq > next || len(all) != next-seq {
		return nil, next, false
	}
	seen := map[Change]bool{}
	for _, c := range all {
		if !seen[c] {
			seen[c] = true
			changes = append(changes, c)
		}
	}
	return changes, next, true
}
