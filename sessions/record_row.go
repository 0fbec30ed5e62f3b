package sessions

import (
	"os"
)

// stateOf says how a recorded session is, from its pane.
func StateOf(r Record, p Pane, there, silent bool) State {
	switch {
	case silent:
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

func RowOf(r Record, s State) Row {
	row := DeclaredRow(r.Definition)
	row.Ref, row.ID, row.State, row.Running = r.Ref, r.ID, s, s == StateRunning
	row.Pane, row.Conversation, row.Changed = r.Pane, r.Conversation, r.Changed
	row.TmuxTarget = r.Ref.TmuxName()
	return row
}

func DeclaredRow(d Definition) Row {
	ref := d.Ref()
	return Row{Ref: ref, Kind: ref.Kind(), Name: d.Name, Description: d.Description, Source: d.Source, Harness: d.Harness, Cwd: d.Cwd,
		State: StateNew, AutoStart: d.AutoStart, TmuxTarget: ref.TmuxName(), Chat: d.Chat}
}

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

// folderIDAt is that of the folder at a path, if it can be looked at.
func FolderIDAt(path string) FolderID {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return FolderIDOf(info)
}
