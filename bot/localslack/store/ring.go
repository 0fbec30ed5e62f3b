package store

// ring keeps the last max items; seq numbers start at 1 and never repeat.
type ring[T any] struct {
	max   int
	items []T
	Last  int // seq of the newest item
}

// add appends an item that make builds from its seq.
func (r *ring[T]) add(build func(seq int) T) {
	r.Last++
	r.items = append(r.items, build(r.Last))
	if len(r.items) >= 2*r.max {
		r.items = append(r.items[:0:0], r.items[len(r.items)-r.max:]...)
	}
}

// since returns copies of the items after seq, oldest first.
func (r *ring[T]) since(seq int) []T {
	first := r.Last - len(r.items) // seq before the oldest item
	start := min(max(seq-first, 0), len(r.items))
	start = max(start, len(r.items)-r.max)
	return append([]T(nil), r.items[start:]...)
}

// at returns the item with that seq to be changed in place; nil when it is gone.
func (r *ring[T]) at(seq int) *T {
	i := seq - (r.Last - len(r.items)) - 1
	if i < 0 || i >= len(r.items) {
		return nil
	}
	return &r.items[i]
}
