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

// Person returns a member by id.
func (w *Workspace) Person(id string) (p *Person, ok bool) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	m := w.MembersByID[id]
	return &Person{Member: m, w: w}, m != nil
}
