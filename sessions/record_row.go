package sessions

// StateOf returns the state of a recorded session from its pane p, which counts only if there is set. timedOut: tmux did not answer.
func StateOf(r Record, p Pane, there, timedOut bool) State {
	switch {
	case timedOut:
		return StateUnknown
	case there && !p.Dead:
		return StateRunning
	case there, !r.IsDown():
		return StateEnded
	case r.Status == StatusNew:
		return StateNew
	}
	return StateStopped
}

// RowOf makes the row of a recorded session in that state.
func RowOf(r Record, s State) Row {
	row := DeclaredRow(r.Definition)
	row.Ref, row.ID, row.State, row.Running = r.Ref, r.ID, s, s == StateRunning
	row.Pane, row.Conversation, row.Changed = r.Pane, r.Conversation, r.Changed
	row.TmuxTarget = r.Ref.TmuxName()
	return row
}

// DeclaredRow makes the row of a session that has no record.
func DeclaredRow(d Definition) Row {
	ref := d.Ref()
	return Row{Ref: ref, Kind: ref.Kind(), Name: d.Name, Description: d.Description, Source: d.Source, Harness: d.Harness, Cwd: d.Cwd,
		State: StateNew, AutoStart: d.AutoStart, TmuxTarget: ref.TmuxName(), Chat: d.Chat}
}

// BrokenRow makes the row of a record that cannot be read.
func BrokenRow(u *UnreadableError) Row {
	row := Row{Ref: u.Ref, Kind: u.Ref.Kind(), Name: u.Ref.Name(), State: StateBroken, Detail: u.Error()}
	switch {
	case u.Ref != "":
		row.TmuxTarget = u.Ref.TmuxName()
	case u.Slug != "": // the file of a work item, whose ref cannot be told from it
		row.Kind, row.Name, row.TmuxTarget = KindWorkItem, u.Slug, TmuxName(u.Slug)
	default:
		row.Kind = KindStanding
	}
	return row
}
