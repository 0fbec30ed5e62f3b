package localslack

// People returns everybody, the bot first.
func (w *Workspace) People() []*Person {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	out := make([]*Person, 0, len(w.PeopleOrder))
	for _, id := range w.PeopleOrder {
		out = append(out, &Person{Member: w.MembersByID[id], w: w})
	}
	return out
}
