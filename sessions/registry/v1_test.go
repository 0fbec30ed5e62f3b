package registry

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"the-loop/sessions"
)

// stateV1 is a copy of what the program wrote when records had version 1 and bot.json had none.
func stateV1(t *testing.T) *Registry {
	t.Helper()
	root := t.TempDir()
	if err := os.CopyFS(root, os.DirFS(filepath.Join("testdata", "v1"))); err != nil {
		t.Fatal(err)
	}
	return New(root)
}

func recordsV1() []sessions.Record {
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	helper := sessions.Record{Version: sessions.RecordVersion, ID: "0b0e1a3c-90e4-4f3c-9d0c-000000000001", Ref: "standing:helper",
		Definition: sessions.Definition{Name: "helper", Description: "Helps", Source: sessions.SourceCreated, Harness: "claude",
			HarnessArgs: []string{"--model", "<opus>"}, Cwd: "/srv/helper", Prompt: "Do \"this\"\nüñí", AutoStart: true,
			Chat: sessions.ChatDefinition{Enabled: true, Channel: "C0123"}},
		Conversation: "c-1", Status: sessions.StatusRunning, Server: sessions.Server{Socket: "/tmp/tmux-1/loop", PID: 7, Start: 1234567890},
		Pane: "%3", TmuxSession: "$1", Created: at, Changed: at.Add(time.Hour)}
	quiet := helper
	quiet.ID, quiet.Ref, quiet.Definition.Name, quiet.Definition.Source = "0b0e1a3c-90e4-4f3c-9d0c-000000000002", "standing:quiet", "quiet", sessions.SourceDeclared
	quiet.Definition.HarnessArgs, quiet.Definition.Chat = nil, sessions.ChatDefinition{}
	quiet.Status, quiet.Server, quiet.Pane = sessions.StatusStopped, sessions.Server{}, ""
	item := quiet
	item.ID, item.Ref, item.Definition.Name, item.Definition.Source = "0b0e1a3c-90e4-4f3c-9d0c-000000000003", "github:acme/shop#7", "acme/shop#7", sessions.SourceRegistered
	item.Definition.Chat.Enabled, item.Status = true, sessions.StatusNew
	return []sessions.Record{item, helper, quiet}
}

func TestRecordsOfVersion1AreReadAndWrittenAsTheNext(t *testing.T) {
	t.Parallel()
	r := stateV1(t)
	records, unreadable, err := r.List(t.Context())
	if diff := cmp.Diff(recordsV1(), records); diff != "" || err != nil || len(unreadable) > 0 {
		t.Fatal(diff, err, unreadable)
	}
	for _, rec := range records {
		if loaded, err := r.Load(t.Context(), rec.Ref); err != nil || !cmp.Equal(loaded, rec) {
			t.Errorf("load %s: %+v, %v", rec.Ref, loaded, err)
		}
		save(t, r, rec)
	}
	data, err := os.ReadFile(r.standingPath("helper"))
	var written struct {
		Version    int
		Definition map[string]any
	}
	if err != nil || json.Unmarshal(data, &written) != nil || written.Version != 2 {
		t.Fatalf("%s, %v", data, err)
	}
	if _, left := written.Definition["slack"]; left || !cmp.Equal(written.Definition["chat"], map[string]any{"enabled": true, "channel": "C0123"}) {
		t.Errorf("written as %s", data)
	}
	again, _, err := r.List(t.Context())
	if diff := cmp.Diff(records, again); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestAFieldOfALaterProgramSurvivesASave(t *testing.T) {
	t.Parallel()
	r := stateV1(t)
	data, err := os.ReadFile(r.standingPath("helper"))
	if err != nil {
		t.Fatal(err)
	}
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	doc["later"] = "x"
	doc["definition"].(map[string]any)["slack"].(map[string]any)["later"] = "y"
	if data, err = json.Marshal(doc); err != nil {
		t.Fatal(err)
	}
	write(t, r.standingPath("helper"), string(data))
	rec, err := r.Load(t.Context(), "standing:helper")
	if err != nil {
		t.Fatal(err)
	}
	rec.Status = sessions.StatusStopped
	save(t, r, rec)
	if data, err = os.ReadFile(r.standingPath("helper")); err != nil {
		t.Fatal(err)
	}
	var written struct {
		Later, Status string
		Definition    struct{ Chat map[string]any }
	}
	if err := json.Unmarshal(data, &written); err != nil || written.Later != "x" || written.Status != "stopped" || written.Definition.Chat["later"] != "y" {
		t.Errorf("%s, %v", data, err)
	}
}

func TestLedgersAndTheBotsStateOfVersion1AreRead(t *testing.T) {
	t.Parallel()
	r := stateV1(t)
	at := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	const id = "0b0e1a3c-90e4-4f3c-9d0c-000000000003"
	ledger, err := r.LoadLedger(t.Context(), "github:acme/shop#7")
	want := sessions.Ledger{Version: 1, Ref: "github:acme/shop#7", Deliveries: []sessions.LedgerEntry{
		{ID: "d1", State: sessions.DeliveryDone, Receipt: sessions.ReceiptAccepted, At: at, Session: id, InPrompt: true},
		{ID: "d2", State: sessions.DeliveryInFlight, At: at.Add(time.Hour), Session: id},
	}}
	if diff := cmp.Diff(want, ledger); diff != "" || err != nil {
		t.Error(diff, err)
	}
	state, alive, err := r.BotRunning()
	wantState := BotState{PID: 41, App: "A1", Team: "T1", Started: at, Written: at.Add(time.Minute), Connected: true,
		LastFrame: at.Add(time.Minute), Connections: 1, Bound: 2, Unposted: 3}
	if diff := cmp.Diff(wantState, state); diff != "" || err != nil || alive {
		t.Error(diff, err, alive)
	}
}
