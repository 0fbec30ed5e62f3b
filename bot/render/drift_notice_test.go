package render

import (
	"fmt"
	"strings"
	"testing"

	"the-loop/sessions"
)

func driftOf(stale ...sessions.DriftRow) sessions.Drift {
	return sessions.Drift{Configured: true, Running: 6, Stale: len(stale), Rows: stale}
}

func staleRow(name string, names ...string) sessions.DriftRow {
	return sessions.DriftRow{Ref: sessions.Ref(name), ID: "id-" + name, State: sessions.DriftStale, Stale: names}
}

// R3.2: to the letter.
func TestR3_2_DriftNoticesAreRendered(t *testing.T) {
	t.Parallel()
	two := driftOf(staleRow("standing:build", "API_KEY", "DB_PASSWORD"), staleRow("github:acme/shop#7", "API_KEY"))
	done := []sessions.RestartRow{{Ref: "standing:build", Outcome: sessions.OutcomeVerified}}
	unread := driftOf()
	unread.Unknown = 1
	var all []Message
	for _, r := range []DriftNotice{
		{Drift: two, Token: "t"},
		{Drift: two, Token: "t", RequestedBy: "U1", Total: 2},
		{Drift: driftOf(two.Rows[1]), Token: "t", RequestedBy: "U1", Total: 2, Rows: done},
		{Drift: driftOf(two.Rows[1]), Token: "t", Rows: append(done, sessions.RestartRow{Ref: "github:acme/shop#7", Outcome: sessions.OutcomeStale, Stale: []string{"API_KEY"}},
			sessions.RestartRow{Ref: "standing:x", Outcome: sessions.OutcomeFailed, Detail: "the agent ended <within> 2s"},
			sessions.RestartRow{Ref: "standing:y", Outcome: sessions.OutcomeUnverified})},
		{Drift: driftOf(), Rows: done},
		{Drift: unread},
		{Drift: two, Superseded: true},
		{Drift: sessions.Drift{Configured: true, Problem: "open /x/env: no such file"}},
		{},
	} {
		m, err := Post{Text: r.Text(), Buttons: r.Buttons()}.Render()
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, m)
	}
	compareGolden(t, "rotation.json", indentedJSON(t, all, nil))
}

func TestDriftNoticesStayWithinSlacksLimits(t *testing.T) {
	t.Parallel()
	var rows []sessions.DriftRow
	var rolled []sessions.RestartRow
	names := make([]string, 500)
	for i := range names {
		names[i] = strings.Repeat("N", 200) + fmt.Sprint(i)
	}
	for i := range 500 {
		rows = append(rows, staleRow(fmt.Sprint("standing:s", i), names...))
		rolled = append(rolled, sessions.RestartRow{Ref: rows[i].Ref, Outcome: sessions.OutcomeFailed, Detail: strings.Repeat("<", 5000)})
	}
	r := DriftNotice{Drift: driftOf(rows...), Rows: rolled}
	m, err := Post{Text: r.Text(), Buttons: r.Buttons()}.Render()
	if err != nil || !strings.Contains(r.Text(), "… and 460 more") || !strings.Contains(r.Text(), "and 488 more") {
		t.Errorf("%d blocks, %v", len(m.Blocks), err)
	}
	if text := RestartSummary(sessions.RestartResult{Rows: rolled, Malformed: []int{3}}); !strings.Contains(text, ":warning: Line 3 of the env file is malformed and not used.") {
		t.Errorf("%.200q", text[len(text)-200:])
	}
}
