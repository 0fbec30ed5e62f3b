package slack

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"the-loop/bot/localslack"
	"the-loop/threads/chat"
)

// upload uploads a file.
func (x *env) upload(name, content string) chat.FileUpload {
	x.t.Helper()
	f := chat.FileUpload{Name: name, Size: int64(len(content))}
	id, err := x.client.Upload(x.ctx, f, strings.NewReader(content))
	if err != nil {
		x.t.Fatal(err)
	}
	f.ID = id
	return f
}

func TestAFileIsUploadedToItsThreadAndFound(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	p := chat.Post{Channel: x.ch, Root: x.postRoot(), Text: "look &amp; see"}
	since := time.Now()
	f := x.upload("plot.png", "pixels")
	if ts, err := x.client.FindFile(x.ctx, f, p, since); ts != "" || err != nil {
		t.Errorf("found before it was posted: %q, %v", ts, err)
	}
	if err := x.client.Share(x.ctx, f, p); err != nil {
		t.Fatal(err)
	}
	all := x.Thread(x.ch, p.Root)
	if m := all[len(all)-1]; m.Text != p.Text || len(m.Files) != 1 || string(m.Files[0].Content) != "pixels" || m.Files[0].Name != "plot.png" {
		t.Errorf("posted %+v", m)
	}
	for _, look := range []chat.FileUpload{f, {Name: f.Name, Size: f.Size}} {
		if ts, err := x.client.FindFile(x.ctx, look, p, since); ts != all[len(all)-1].TS || err != nil {
			t.Errorf("%+v: found %q, %v", look, ts, err)
		}
	}
	for _, look := range []chat.FileUpload{{ID: "F404", Name: f.Name, Size: f.Size}, {Name: f.Name, Size: 7}, {Name: "other", Size: f.Size}} {
		if ts, err := x.client.FindFile(x.ctx, look, p, since); ts != "" || err != nil {
			t.Errorf("%+v: found %q, %v", look, ts, err)
		}
	}
	if err := x.client.Share(x.ctx, f, p); err != nil { // it was done, and its message is not seen yet
		t.Error(err)
	}
	if n := len(x.Thread(x.ch, p.Root)); n != len(all) {
		t.Errorf("posted again: %d messages", n)
	}
}

// openclaw/openclaw#10837: what belongs into a thread leaks into the channel.
func TestAFileIsNotPostedWhereItsThreadIsGone(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	root := x.postRoot()
	x.reply(root, "a reply, so that a tombstone stays")
	if err := x.DeleteMessage(x.ch, root); err != nil {
		t.Fatal(err)
	}
	for _, ts := range []string{root, "1700000000.000100"} {
		f := x.upload("a.txt", "x")
		if err := x.client.Share(x.ctx, f, chat.Post{Channel: x.ch, Root: ts}); !errors.Is(err, chat.ErrThreadGone) {
			t.Errorf("under %s: %v", ts, err)
		}
	}
	if n := len(x.RequestsOf(MethodUpload)); n != 0 {
		t.Errorf("tried %d times", n)
	}
}

func TestUploadErrorsAreClassified(t *testing.T) {
	t.Parallel()
	x := newEnv(t).identified()
	p := chat.Post{Channel: x.ch, Root: x.postRoot(), Text: "look"}
	if err := x.client.Share(x.ctx, chat.FileUpload{ID: "F404", Name: "a"}, p); !errors.Is(err, chat.ErrNotUploaded) {
		t.Errorf("an upload that Slack forgot: %v", err)
	}
	f := x.upload("a.txt", "x")
	for name, c := range map[string]struct {
		fault localslack.APIFault
		is    error
	}{
		"cut":             {localslack.CutAfter(), chat.ErrOutcomeUnknown},
		"internal error":  {localslack.Error("internal_error"), chat.ErrOutcomeUnknown},
		"not in channel":  {localslack.Error("not_in_channel"), chat.ErrUnavailable},
		"no such channel": {localslack.Error("channel_not_found"), chat.ErrUnavailable},
	} {
		g := x.upload(name, "x")
		x.Faults().InjectAPI(MethodUpload, 1, c.fault)
		if err := x.client.Share(x.ctx, g, p); !errors.Is(err, c.is) {
			t.Errorf("%s: %v", name, err)
		}
		x.Faults().Clear()
	}
	x.Faults().InjectAPI(MethodUpload, 1, localslack.Error("file_sharing_disabled"))
	var final *chat.FileError
	if err := x.client.Share(x.ctx, f, p); !errors.As(err, &final) || !strings.Contains(final.Why, "file_sharing_disabled") {
		t.Errorf("refused for good: %v", err)
	}
	x.Faults().InjectAPI(MethodUploadURL, 1, localslack.RateLimited("7"))
	var limited *chat.RateLimitedError
	if _, err := x.client.Upload(x.ctx, f, strings.NewReader("x")); !errors.As(err, &limited) {
		t.Errorf("429: %v", err)
	}
	x.Faults().InjectAPI("upload", 1, localslack.HTML(503))
	if _, err := x.client.Upload(x.ctx, f, strings.NewReader("x")); err == nil || errors.As(err, &final) {
		t.Errorf("503: %v", err)
	}
	x.Faults().InjectAPI("upload", 1, localslack.HTML(413))
	if _, err := x.client.Upload(x.ctx, f, strings.NewReader("x")); !errors.As(err, &final) {
		t.Errorf("413: %v", err)
	}
}

func TestWithoutTheScopesNothingIsUploaded(t *testing.T) {
	t.Parallel()
	for _, scope := range []string{ScopeUpload, ScopeFetch} {
		x := newEnv(t, func(o *localslack.Options) {
			o.Scopes = slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == scope })
		})
		var final *chat.FileError
		var err error
		if scope == ScopeUpload { // Slack says so itself, and where its scopes are known it is not asked
			_, err = x.client.Upload(x.ctx, chat.FileUpload{Name: "a", Size: 1}, strings.NewReader("x"))
		} else {
			err = x.client.Share(x.ctx, chat.FileUpload{ID: "F404"}, chat.Post{Channel: x.ch, Root: x.postRoot()})
		}
		if !errors.As(err, &final) || !strings.Contains(final.Why, scope) {
			t.Errorf("without %s: %v", scope, err)
		}
	}
}
