package sessions

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Ledgers keeps which deliveries work items have had. Every write is atomic and durable.
type Ledgers interface {
	// LoadLedger returns the ledger of a work item, however its ref is spelt, or an empty one. A file that cannot be read is an
	// [*UnreadableError], and so are two of one work item.
	LoadLedger(ctx context.Context, ref Ref) (Ledger, error)
	// SaveLedger writes it.
	SaveLedger(ctx context.Context, l Ledger) error
}

// Ledger is which deliveries a work item has had, the oldest first. It outlives the session, so that an event that comes
// again after a close is known.
type Ledger struct {
	Version    int           `json:"version"`
	Ref        Ref           `json:"ref"`
	Deliveries []LedgerEntry `json:"deliveries"`
}

// LedgerVersion is the version that this program writes and reads.
const LedgerVersion = 1

// MaxLedgerEntries is how many deliveries of a work item are known again. Of older ones a second delivery is typed as a new one.
const MaxLedgerEntries = 500

// DeliveryState says how far a delivery is.
type DeliveryState string

// The states of a delivery. One that was refused is not stored: it may be delivered again.
const (
	DeliveryInFlight DeliveryState = "inflight" // it may be in the pane
	DeliveryDone     DeliveryState = "done"
	DeliveryInDoubt  DeliveryState = "doubt" // it was reported that nobody can tell whether it arrived
)

// LedgerEntry is one delivery. It holds no text.
type LedgerEntry struct {
	ID       string        `json:"id"`
	State    DeliveryState `json:"state"`
	Receipt  Receipt       `json:"receipt,omitempty"`
	At       time.Time     `json:"at"`
	Session  string        `json:"session,omitempty"` // Record.ID
	Intent   Intent        `json:"intent,omitzero"`
	InPrompt bool          `json:"opening,omitempty"` // an agent was started with it
}

// IsAbandoned reports whether whoever brought the delivery has certainly died over it.
func (e LedgerEntry) IsAbandoned() bool {
	return e.State == DeliveryInFlight && time.Since(e.At) > 2*OpeningTimeout
}

// deliveryPattern is the shape of a delivery's id; GitHub's are UUIDs.
var deliveryPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$`) })

// Find returns the entry of a delivery and its position; -1: it is not known.
func (l Ledger) Find(id string) (LedgerEntry, int) {
	i := slices.IndexFunc(l.Deliveries, func(e LedgerEntry) bool { return e.ID == id })
	if i < 0 {
		return LedgerEntry{}, i
	}
	return l.Deliveries[i], i
}

// Put adds or replaces an entry, and forgets the oldest.
func (l *Ledger) Put(e LedgerEntry) {
	if _, i := l.Find(e.ID); i >= 0 {
		l.Deliveries[i] = e
		return
	}
	l.Deliveries = append(l.Deliveries, e)
	l.Deliveries = l.Deliveries[max(0, len(l.Deliveries)-MaxLedgerEntries):]
}

func (l *Ledger) Remove(id string) {
	l.Deliveries = slices.DeleteFunc(l.Deliveries, func(e LedgerEntry) bool { return e.ID == id })
}

// LedgerLockKey is the key of the lock that who writes the ledger of a work item holds.
func LedgerLockKey(ref Ref) string { return "deliveries:" + string(ref.Key()) }

// OpeningTimeout is what an agent's start may take, until its transcript shows what it was started with.
const OpeningTimeout = 60 * time.Second

// InDoubtError is the answer to a delivery that may have arrived, and is not repeated.
func (e LedgerEntry) InDoubtError() error {
	return fmt.Errorf("%w: it was given to the session at %s, and the agent's record does not show it; "+
		"to have it typed all the same deliver it under another id", ErrInDoubt, e.At.Format(time.RFC3339))
}

// DescribeDoubt names the deliveries that are in doubt; empty: there are none.
func (l Ledger) DescribeDoubt() string {
	var ids []string
	for _, e := range l.Deliveries {
		if e.State == DeliveryInDoubt || e.IsAbandoned() {
			ids = append(ids, e.ID)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return fmt.Sprintf("%d in doubt: %s", len(ids), Truncate(strings.Join(ids, ", "), 200))
}
