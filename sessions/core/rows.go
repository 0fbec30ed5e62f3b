package core

import (
	"os"

	"the-loop/sessions"
)

// stateOf says how a recorded session is, from its pane.
func stateOf(r sessions.Record, p sessions.Pane, there, silent bool) sessions.State {
	switch {
	case silent:
		return sessions.StateUnknown
	case there && !p.Dead:
		return sessions.StateRunning
	case there, !r.IsDown():
		return sessions.StateEnded
	case r.Status == sessions.StatusNew:
		return sessions.StateNew
	}
	return sessions.StateStopped
}

func rowOf(r sessions.Record, s sessions.State) sessions.Row {
	row := declaredRow(r.Definition)
	row.Ref, row.ID, row.State, row.Running = r.Ref, r.ID, s, s == sessions.StateRunning
	row.Pane, row.Conversation, row.Changed = r.Pane, r.Conversation, r.Changed
	row.TmuxTarget = r.Ref.TmuxName()
	return row
}

func declaredRow(d sessions.Definition) sessions.Row {
	ref := d.Ref()
	return sessions.Row{Ref: ref, Kind: ref.Kind(), Name: d.Name, Description: d.Description, Source: d.Source, Harness: d.Harness, Cwd: d.Cwd,
		State: sessions.StateNew, AutoStart: d.AutoStart, TmuxTarget: ref.TmuxName(), Chat: d.Chat}
}

func brokenRow(u *sessions.UnreadableError) sessions.Row {
	row := sessions.Row{Ref: u.Ref, Kind: u.Ref.Kind(), Name: u.Ref.Name(), State: sessions.StateBroken, Detail: u.Error()}
	switch {
	case u.Ref != "":
		row.TmuxTarget = u.Ref.TmuxName()
	case u.Slug != "": // the file of a work item, whose ref cannot be told from it
		row.Kind, row.Name, row.TmuxTarget = sessions.KindWorkItem, u.Slug, sessions.TmuxName(u.Slug)
	default:
		row.Kind = sessions.KindStanding
	}
	return row
}

// folderID is that of the folder at a path, if it can be looked at.
func folderID(path string) sessions.FolderID {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	return sessions.FolderIDOf(info)
}
