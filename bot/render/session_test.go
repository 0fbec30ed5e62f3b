package render

import (
	"encoding/json"
	"strings"
	"testing"

	"the-loop/sessions"
)

var sampleRows = []sessions.Row{
	{Ref: "standing:build", ID: "id-1", Name: "build", Description: "Watches <main> & tells", Source: sessions.SourceDeclared, Harness: "claude",
		Cwd: "/srv/build", State: sessions.StateRunning, Running: true},
	{Ref: "standing:scout", ID: "id-2", Name: "scout", Source: sessions.SourceCreated, Harness: "codex", Cwd: "/srv/a`b",
		State: sessions.StateEnded, Detail: "the agent ended, killed by signal 9"},
	{Ref: "standing:night", ID: "id-3", Name: "night", Source: sessions.SourceCreated, Harness: "codex", Cwd: "/srv", State: sessions.StateStopped,
		Limitations: []string{sessions.LimitationNoPermissions}},
	{Ref: "standing:new", Name: "new", Source: sessions.SourceDeclared, Harness: "claude", Cwd: "/srv", State: sessions.StateNew},
	{Ref: "standing:lost", ID: "id-5", Name: "lost", Source: sessions.SourceCreated, Harness: "claude", Cwd: "/srv", State: sessions.StateUnknown},
}

func indentedJSON(t *testing.T, v any, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(raw) + "\n"
}

func TestSessionsAreAnnouncedWithTheirButtons(t *testing.T) {
	t.Parallel()
	var posts []Message
	for _, r := range sampleRows {
		m, err := Post{Text: Announcement(r), Buttons: SessionButtons(r)}.Render()
		if err != nil {
			t.Fatal(err)
		}
		posts = append(posts, m)
	}
	compareGolden(t, "announcements.json", indentedJSON(t, posts, nil))
}

func TestViewsAreRendered(t *testing.T) {
	t.Parallel()
	home, err := Home(sampleRows, "the channel is archived", "*build* running")
	compareGolden(t, "home.json", indentedJSON(t, home, err))
	compareGolden(t, "create.json", indentedJSON(t, CreateForm{Harnesses: []string{"claude", "codex"}, Harness: "codex", Cwd: "/srv", Channel: "C1"}.View(), nil))
	compareGolden(t, "confirm.json", indentedJSON(t, DeleteModal(sampleRows[0], SessionHandle(sampleRows[0])), nil))
	notice, err := TextModal("A title that is much too long", "text", SessionButtons(sampleRows[0])...)
	compareGolden(t, "notice.json", indentedJSON(t, notice, err))
}

func TestTheHomeTabStaysWithinSlacksLimits(t *testing.T) {
	t.Parallel()
	many := make([]sessions.Row, 0, 500)
	for range 500 {
		r := sampleRows[1]
		r.Description = strings.Repeat("long & ", 1000)
		many = append(many, r)
	}
	home, err := Home(many, strings.Repeat("<", 5000), strings.Repeat("x", 5000))
	if err != nil || len(home.Blocks.BlockSet) > 100 {
		t.Fatalf("%d blocks, %v", len(home.Blocks.BlockSet), err)
	}
	if raw := indentedJSON(t, home, err); len(raw) > 250_000 || !strings.Contains(raw, "and 455 more") {
		t.Errorf("%d bytes", len(raw))
	}
}

func TestTheThreadGetsTheLastScreenOfAnEndedAgent(t *testing.T) {
	t.Parallel()
	screen := strings.Repeat("line\n", 40) + "\n  last ```\n\nPane is dead (signal 9, Mon)\n"
	got := EndedText(sampleRows[1], screen)
	if !strings.Contains(got, "*scout* is down: the agent ended, killed by signal 9.") || strings.Count(got, "line\n") != 14 ||
		!strings.Contains(got, "  last ˋˋˋ\n```") || strings.Contains(got, "Pane is dead") {
		t.Errorf("told %q", got)
	}
	if got := EndedText(sessions.Row{Name: "x"}, " \n"); strings.Contains(got, "```") || !strings.Contains(got, "nobody knows how") {
		t.Errorf("told %q", got)
	}
	if got := PeekText(sampleRows[0], "\n \n"); !strings.Contains(got, "Its screen is empty") {
		t.Errorf("peeked %q", got)
	}
}
