package localslack

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"the-loop/bot/localslack/blockkit"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/wiretest"
)

// typeSamples collects what the workspace says, each with the name of Slack's own TypeScript type for it.
type typeSamples struct {
	t    *testing.T
	code strings.Builder
	used map[string]string // type → module
	n    int
}

func (l *typeSamples) add(module, typ string, value any) {
	l.t.Helper()
	raw := must[[]byte](l.t)(json.MarshalIndent(removeTypeGaps(value, module), "", " "))
	name, _, _ := strings.Cut(typ, "<")
	l.used[name] = module
	if _, arg, ok := strings.Cut(typ, "<"); ok {
		l.used[strings.TrimSuffix(arg, ">")] = module
	}
	l.n++
	code := strings.ReplaceAll(string(raw), `"`+undefined+`"`, "undefined")
	fmt.Fprintf(&l.code, "export const v%d: %s = %s;\n", l.n, typ, code)
}

// knownTypeGaps lists what Slack sends and its types do not know: they are generated from samples, or kept by hand.
var knownTypeGaps = map[string][]string{
	"@slack/web-api": {"blocks", "parent_user_id", "edited", "client_msg_id", "close",
		"submit", "title", "previous_view_id", "thread_ts", "metadata", "subtype", "ts"},
	"@slack/types": {"attachments", "source_team", "user_team", "ims"},
	"@slack/bolt":  {"enterprise", "context_enterprise_id"},
}

// removeTypeGaps leaves out what the types are behind in.
func removeTypeGaps(v any, module string) any {
	switch t := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range t {
			if !slices.Contains(knownTypeGaps[module], k) {
				out[k] = removeTypeGaps(e, module)
			}
		}
		return out
	case []any:
		out := []any{}
		for _, e := range t {
			out = append(out, removeTypeGaps(e, module))
		}
		return out
	}
	return v
}

// addChangedMessages checks a message within a change apart: the types want it to have a channel, which Slack leaves out.
func (l *typeSamples) addChangedMessages(inner map[string]any) {
	for _, key := range []string{"message", "previous_message"} {
		m, ok := inner[key].(map[string]any)
		if !ok {
			continue
		}
		typ := "GenericMessageEvent"
		if m["subtype"] == "thread_broadcast" {
			typ = "ThreadBroadcastMessageEvent"
		}
		for _, k := range []string{"channel", "channel_type", "event_ts"} {
			m[k] = inner[k]
		}
		l.addEvent(typ, m)
	}
}

// undefined stands where the types want a key without a value.
const undefined = "(undefined)"

func (l *typeSamples) addEvent(typ string, inner map[string]any) {
	switch typ {
	case "GenericMessageEvent":
		inner["subtype"] = undefined
		for _, k := range []string{"latest_reply", "reply_count", "reply_users", "reply_users_count"} {
			delete(inner, k)
		}
	case "ThreadBroadcastMessageEvent":
		delete(inner, "parent_user_id")
		delete(inner, "team")
		root := inner["root"].(map[string]any)
		root["subtype"], root["channel"], root["channel_type"], root["event_ts"] = undefined, inner["channel"], inner["channel_type"], inner["event_ts"]
	case "BotMessageEvent", "MeMessageEvent":
		delete(inner, "parent_user_id")
	}
	l.add("@slack/types", typ, inner)
}
func (l *typeSamples) addBolt(typ string, payload any)  { l.add("@slack/bolt", typ, payload) }
func (l *typeSamples) addResponse(typ string, body any) { l.add("@slack/web-api", typ, body) }

// typeCheck lets TypeScript check every literal strictly: keys that Slack does not know are errors too. It returns what
// TypeScript says.
func (l *typeSamples) typeCheck() (string, error) {
	l.t.Helper()
	tsc := filepath.Join(boltDir, "node_modules", "typescript", "bin", "tsc")
	dir := l.t.TempDir()
	modules := must[string](l.t)(filepath.Abs(filepath.Join(boltDir, "node_modules")))
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		l.t.Fatal(err)
	}
	var names []string
	for name := range l.used {
		names = append(names, name)
	}
	sort.Strings(names)
	var file strings.Builder
	for _, name := range names {
		fmt.Fprintf(&file, "import type { %s } from '%s';\n", name, l.used[name])
	}
	file.WriteString(l.code.String())
	path := filepath.Join(dir, "said.ts")
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		l.t.Fatal(err)
	}
	cmd := exec.CommandContext(l.t.Context(), "node", must[string](l.t)(filepath.Abs(tsc)), "--strict", "--noEmit",
		"--skipLibCheck", "--target", "es2022", "--module", "nodenext", "--moduleResolution", "nodenext", path)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func requireBolt(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("Bolt takes seconds")
	}
	for _, part := range []string{"@slack/bolt", "typescript"} {
		if _, err := os.Stat(filepath.Join(boltDir, "node_modules", part)); err != nil {
			t.Fatal("Bolt is missing; install it with: npm ci --prefix testdata/bolt")
		}
	}
}

func TestBoltTypesMatchThePayloads(t *testing.T) {
	t.Parallel()
	requireBolt(t)
	l := &typeSamples{t: t, used: map[string]string{}}
	f := startFixture(t, noRates)
	f.sampleEvents(l)
	f.sampleInteractions(l)
	f.sampleResponses(l)
	if out, err := l.typeCheck(); err != nil {
		t.Errorf("Slack's types do not fit: %v\n%s", err, out)
	}
}

func TestBoltTypesFindATypo(t *testing.T) {
	t.Parallel()
	requireBolt(t)
	l := &typeSamples{t: t, used: map[string]string{}}
	l.addBolt("SlashCommand", map[string]any{"comand": "/agent"})
	if out, err := l.typeCheck(); err == nil || !strings.Contains(out, "comand") {
		t.Errorf("it was not found: %v, %s", err, out)
	}
}

func (f *fixture) sampleEvents(l *typeSamples) {
	s := f.DialReady()
	eve := f.AddUser("eve", store.Stranger("T0OTHERCO1"))
	shared := f.AddChannel("shared", store.ExtShared("T0OTHERCO1"), store.Members(eve.ID, f.BotUserID()))
	next := func(typ string) {
		f.t.Helper()
		payload, inner := s.Event()
		l.addChangedMessages(inner)
		l.addEvent(typ, inner)
		payload["event"] = map[string]any{"type": inner["type"]}
		l.addBolt("EnvelopedEvent", payload)
	}
	root := f.post("see https://a.example/ 🚀 @ann `code` README.md @here #general")
	next("GenericMessageEvent")
	f.reply(root, "reply")
	next("GenericMessageEvent")
	must[string](f.t)(eve.Post(shared.ID, "from elsewhere"))
	next("GenericMessageEvent")
	loud := f.reply(root, "loud", Broadcast())
	next("ThreadBroadcastMessageEvent")
	f.reply(root, "file", WithFiles(store.File{Name: "a.txt", Content: []byte("x")}))
	next("FileShareMessageEvent")
	f.reply(root, "hook", AsBotMessage("hook"))
	next("BotMessageEvent")
	f.post("me", AsMeMessage())
	next("MeMessageEvent")
	f.post("@the-loop hi")
	next("GenericMessageEvent")
	next("AppMentionEvent")
	_ = f.Unfurl(f.ch, root)
	next("MessageChangedEvent")
	_ = f.ann.Edit(f.ch, loud, "changed")
	next("MessageChangedEvent")
	_ = f.ann.Delete(f.ch, loud)
	next("MessageDeletedEvent")
	_ = f.ann.React(f.ch, root, "eyes")
	next("ReactionAddedEvent")
	_ = f.ann.Unreact(f.ch, root, "eyes")
	next("ReactionRemovedEvent")
	_ = f.ann.OpenHome(f.ctx)
	next("AppHomeOpenedEvent")
	f.Join(f.ch, eve.ID)
	next("ChannelJoinMessageEvent")
	next("MemberJoinedChannelEvent")
	f.Leave(f.ch, eve.ID)
	next("MemberLeftChannelEvent")
	f.Archive(shared.ID)
	next("ChannelArchiveEvent")
	_ = s.Conn.Close()
	f.waitUntil("closed", func() bool { return f.Connections() == 0 })
}

func (f *fixture) sampleInteractions(l *typeSamples) {
	got := make(chan map[string]any, 1)
	s := f.ackWith(func(p map[string]any) any {
		if p["event"] == nil {
			got <- p
		}
		return nil
	})
	ts := blockkit.Str(f.CallOK("chat.postMessage", wiretest.Form("channel", f.ch, "text", "x", "blocks", button("go")))["ts"])
	res := must[SlashResult](f.t)(f.ann.Slash(f.ctx, f.ch, "/agent", "x"))
	l.addBolt("SlashCommand", <-got)
	f.CallOK("views.open", wiretest.Form("trigger_id", res.TriggerID, "view", formView))
	must[map[string]string](f.t)(f.ann.Submit(f.ctx, f.Views("ann")[0].ID, map[string]string{"name": "x"}))
	l.addBolt("ViewSubmitAction", withoutUsername(<-got))
	res = must[SlashResult](f.t)(f.ann.Slash(f.ctx, f.ch, "/agent", "x"))
	<-got
	f.CallOK("views.open", wiretest.Form("trigger_id", res.TriggerID, "view", formView))
	_ = f.ann.CloseView(f.ctx, f.Views("ann")[0].ID)
	l.addBolt("ViewClosedAction", withoutUsername(<-got))
	_ = f.ann.Click(f.ctx, f.ch, ts, "go")
	l.addBolt("BlockAction<ButtonAction>", <-got)
	_ = f.ann.Shortcut(f.ctx, f.ch, ts, "menu")
	l.addBolt("MessageShortcut", <-got)
	_ = f.ann.GlobalShortcut(f.ctx, "menu")
	l.addBolt("GlobalShortcut", <-got)
	_ = s.Conn.Close()
}

// withoutUsername takes the username out, which the types of views do not know.
func withoutUsername(payload map[string]any) map[string]any {
	delete(payload["user"].(map[string]any), "username")
	return payload
}

func (f *fixture) sampleResponses(l *typeSamples) {
	ask := func(typ, method string, args ...string) map[string]any {
		f.t.Helper()
		out := f.CallOK(method, wiretest.Form(args...))
		l.addResponse(typ, out)
		return out
	}
	root := f.post("root")
	f.reply(root, "with a file", WithFiles(store.File{Name: "a.txt", Content: []byte("x")}))
	ask("AuthTestResponse", "auth.test")
	ts := blockkit.Str(ask("ChatPostMessageResponse", "chat.postMessage", "channel", f.ch, "text", "x", "thread_ts", root, "metadata", `{"event_type":"a","event_payload":{}}`)["ts"])
	ask("ChatUpdateResponse", "chat.update", "channel", f.ch, "ts", ts, "text", "y")
	ask("ChatPostEphemeralResponse", "chat.postEphemeral", "channel", f.ch, "user", f.ann.ID, "text", "y")
	ask("ChatGetPermalinkResponse", "chat.getPermalink", "channel", f.ch, "message_ts", ts)
	ask("ReactionsAddResponse", "reactions.add", "channel", f.ch, "timestamp", ts, "name", "eyes")
	ask("ReactionsGetResponse", "reactions.get", "channel", f.ch, "timestamp", ts)
	ask("ConversationsInfoResponse", "conversations.info", "channel", f.ch, "include_num_members", "true")
	ask("ConversationsHistoryResponse", "conversations.history", "channel", f.ch)
	ask("ConversationsRepliesResponse", "conversations.replies", "channel", f.ch, "ts", root, "include_all_metadata", "true")
	ask("ConversationsMembersResponse", "conversations.members", "channel", f.ch)
	ask("ConversationsListResponse", "conversations.list", "types", "public_channel,private_channel")
	ask("UsersInfoResponse", "users.info", "user", f.ann.ID)
	f.AddGroup("admins", f.ann.ID)
	ask("UsergroupsListResponse", "usergroups.list", "include_users", "true")
	ask("ViewsPublishResponse", "views.publish", "user_id", f.ann.ID, "view", homeView)
	ask("FilesGetUploadURLExternalResponse", "files.getUploadURLExternal", "filename", "a", "length", "1")
	id := f.uploadFile("a", "x")
	ask("FilesCompleteUploadExternalResponse", "files.completeUploadExternal", "files", `[{"id":"`+id+`","title":"a"}]`, "channel_id", f.ch, "thread_ts", root)
	ask("FilesInfoResponse", "files.info", "file", id)
	ask("ChatDeleteResponse", "chat.delete", "channel", f.ch, "ts", ts)
}
