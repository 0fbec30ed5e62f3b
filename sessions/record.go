package sessions

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Status is what a record says of its session. Whether the pane lives is tmux's word, not the record's.
type Status string

// The statuses of a record.
const (
	StatusStarting Status = "starting" // written before the spawn: a pane with this id may or may not exist
	StatusRunning  Status = "running"
	StatusStopped  Status = "stopped"
	StatusNew      Status = "new" // registered, and never started
)

// Source says where a definition comes from.
type Source string

// The sources of a definition.
const (
	SourceDeclared Source = "declared" // in the config
	SourceCreated  Source = "created"  // made at run time; the record holds it

	SourceRegistered Source = "registered" // of a work item; the record holds it
)

// Definition is what a session is.
type Definition struct {
	Name        string         `json:"name"`
	Description string         `json:"description,omitempty"`
	Source      Source         `json:"source"`
	Harness     string         `json:"harness"`
	HarnessArgs []string       `json:"harnessArgs"`
	Cwd         string         `json:"cwd"` // absolute
	Prompt      string         `json:"prompt,omitempty"`
	PromptFile  string         `json:"promptFile,omitempty"`
	AutoStart   bool           `json:"autoStart"`
	Chat        ChatDefinition `json:"chat"`
}

// ChatDefinition says whether a session has a thread in the chat service, and where.
type ChatDefinition struct {
	Enabled bool   `json:"enabled"`
	Channel string `json:"channel,omitempty"` // the id of the channel; resolved when the session is started
}

// Ref is the ref of the session that it defines.
func (d Definition) Ref() Ref {
	if d.Source == SourceRegistered {
		return Ref(KindWorkItem + ":" + d.Name)
	}
	return StandingRef(d.Name)
}

// Clone is a copy that shares nothing.
func (d Definition) Clone() Definition {
	d.HarnessArgs = slices.Clone(d.HarnessArgs)
	return d
}

// Record is what the-loop knows of a session. One file holds one record.
type Record struct {
	Version      int        `json:"version"`
	ID           string     `json:"id"` // UUID, new at each create: the identity of the session
	Ref          Ref        `json:"ref"`
	Definition   Definition `json:"definition"`
	Conversation string     `json:"conversation"` // the harness's own id of the conversation
	Status       Status     `json:"status"`
	Server       Server     `json:"server"`
	Pane         string     `json:"pane"`        // "%3"
	TmuxSession  string     `json:"tmuxSession"` // "$1"; of a session that is stopped, where it was: its operator may have panes there
	Created      time.Time  `json:"created"`
	Changed      time.Time  `json:"changed"`

	// FolderID is that of the folder in which the agent was started last. Empty: it was started by an earlier version.
	FolderID FolderID `json:"folderId,omitempty"`

	// ReplacesPID is the pid of the pane's process that a restart is about to end, while its status is [StatusStarting]; else 0.
	// A pane with another process is what came of it.
	ReplacesPID int `json:"replaces,omitempty"`
}

// RecordVersion is the version that this program writes. In version 1, what is now in Definition.Chat had the name of a chat service.
const RecordVersion = 2

// Target is the address of the session's pane.
func (r Record) Target() Target { return Target{Pane: r.Pane, Mark: r.ID} }

// AgentConversation is where the agent's own record of the conversation is found.
func (r Record) AgentConversation() Conversation {
	return Conversation{Session: r.ID, ID: r.Conversation, Cwd: r.Definition.Cwd, Started: r.Changed}
}

// HasRun reports whether there was an agent: a pane was made, or the conversation of one that ran elsewhere is known.
func (r Record) HasRun() bool { return r.Server != (Server{}) || r.Conversation != "" }

// IsDown reports whether no pane is to be expected.
func (r Record) IsDown() bool { return r.Status == StatusStopped || r.Status == StatusNew }

// WithPane records where the session lives now.
func (r Record) WithPane(p Pane, s Status, now time.Time) Record {
	r.Server, r.Pane, r.TmuxSession = p.Server, p.ID, p.SessionID
	r.Status, r.Changed, r.ReplacesPID = s, now, 0
	return r
}

// IsRestartPending reports that a restart was cut short before it had ended what runs in the pane.
func (r Record) IsRestartPending(p Pane) bool {
	return r.Status == StatusStarting && r.ReplacesPID != 0 && r.ReplacesPID == p.PID
}

// Validate refuses what the configuration's schema refuses of a declared session.
func (d Definition) Validate() error {
	refuse := func(what, remedy string) error { return &Refusal{Cause: ErrRefused, What: what, Remedy: remedy} }
	switch {
	case d.Prompt != "" && d.PromptFile != "":
		return refuse("there are a prompt and a promptFile, and no order between them", "give one of the two")
	case !filepath.IsAbs(d.Cwd):
		return refuse(fmt.Sprintf("the folder %q is not an absolute path", d.Cwd), "write the whole path")
	case d.PromptFile != "" && !filepath.IsAbs(d.PromptFile):
		return refuse(fmt.Sprintf("the promptFile %q is not an absolute path", d.PromptFile), "write the whole path")
	case strings.ContainsRune(d.Prompt+d.Description+strings.Join(d.HarnessArgs, ""), 0):
		return refuse("there is a NUL in it", "leave it out")
	}
	return nil
}
