package webapi

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

const signInPage = "<!DOCTYPE html><html><head><title>Sign in to Slack | Slack</title></head><body><h1>Sign in to your workspace</h1></body></html>"

// ServeFile is url_private: without a token that may read files, a sign-in page with status 200.
func (w *API) ServeFile(rw http.ResponseWriter, r *http.Request) {
	seq := w.LogRequest("file", map[string]string{"id": r.PathValue("id")})
	fault := w.Script.TakeForMethod("file")
	if fault.AppliesBefore() {
		w.FinishRequest(seq, fault.Status, false, fault.Code, fault.Name)
		if fault.ApplyBefore(w.Clock, rw, r) {
			return
		}
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	w.Mu.Lock()
	f := w.Files[r.PathValue("id")]
	allowed := token == w.Opts.BotToken && w.tokenErrors[token] == "" && slices.Contains(w.Opts.Scopes, "files:read")
	w.Mu.Unlock()
	switch {
	case !allowed:
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = rw.Write([]byte(signInPage)) // the client may be gone
		w.FinishRequest(seq, http.StatusOK, false, "sign_in", "")
	case f == nil:
		http.NotFound(rw, r)
		w.FinishRequest(seq, http.StatusNotFound, false, "file_not_found", "")
	default:
		rw.Header().Set("Content-Type", f.Mimetype)
		rw.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base("/" + f.Name)}))
		_, _ = rw.Write(f.Content) // the client may be gone
		w.FinishRequest(seq, http.StatusOK, true, "", "")
	}
}

func filesGetUploadURL(c *call) (store.Object, error) {
	w := c.w
	size, err := strconv.Atoi(c.arg("length"))
	if err != nil || size <= 0 || c.arg("filename") == "" {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] missing required field: filename or length")
	}
	f := &store.StoredFile{File: store.File{ID: w.NewID("F"), Name: c.arg("filename"), User: w.BotUser, Size: size}}
	w.Files[f.ID] = f
	return store.Object{"upload_url": w.BaseURL + "/upload/" + f.ID, "file_id": f.ID}, nil
}

// ServeUpload takes the bytes of an upload, raw or as a multipart form.
func (w *API) ServeUpload(rw http.ResponseWriter, r *http.Request) {
	seq := w.LogRequest("upload", map[string]string{"id": r.PathValue("id")})
	if fault := w.Script.TakeForMethod("upload"); fault.AppliesBefore() {
		w.FinishRequest(seq, fault.Status, false, fault.Code, fault.Name)
		if fault.ApplyBefore(w.Clock, rw, r) {
			return
		}
	}
	data, err := readUpload(r)
	w.Mu.Lock()
	defer w.Mu.Unlock()
	f := w.Files[r.PathValue("id")]
	switch {
	case err != nil || f == nil || f.Complete:
		http.Error(rw, "invalid upload", http.StatusBadRequest)
	case len(data) != f.Size:
		http.Error(rw, "the size is not what was announced", http.StatusBadRequest)
	default:
		f.Content = data
		_, _ = rw.Write([]byte("OK - " + strconv.Itoa(len(data)))) // the client may be gone
	}
}

func readUpload(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/") {
		return io.ReadAll(r.Body)
	}
	mr, err := r.MultipartReader()
	if err != nil {
		return nil, err
	}
	for {
		part, err := mr.NextPart()
		if err != nil {
			return nil, err
		}
		if part.FileName() != "" {
			return io.ReadAll(part)
		}
	}
}

// filesCompleteUpload completes uploads and shares them. An upload that cannot be shared is not completed either.
func filesCompleteUpload(c *call) (store.Object, error) {
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(c.arg("files")), &list) != nil || len(list) == 0 {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] missing required field: files")
	}
	var files []store.File
	for _, item := range list {
		f := c.w.Files[item.ID]
		if f == nil || f.Complete || f.Content == nil {
			return nil, slackerr.New("file_not_found")
		}
		done := f.File
		done.Title, done.Mimetype = item.Title, http.DetectContentType(f.Content)
		files = append(files, done)
	}
	post, err := c.prepareShare(files)
	if err != nil {
		return nil, err
	}
	for i := range files {
		c.w.StoreFile(&files[i])
	}
	post()
	return store.Object{"files": files}, nil
}

// prepareShare makes ready to post files in a channel or thread; without a channel nobody sees them.
func (c *call) prepareShare(files []store.File) (post func(), err error) {
	if c.arg("channel_id") == "" {
		return func() {}, nil
	}
	c.args["channel"] = c.arg("channel_id")
	ch, err := c.channelToPostIn()
	if err != nil {
		return nil, err
	}
	root, err := c.parentMessage(ch)
	if err != nil {
		return nil, err
	}
	for i := range files {
		files[i].MarkSharedIn(ch)
	}
	return func() {
		m := c.w.newBotMessage(messageContent{text: c.arg("initial_comment")})
		m.Files, m.Subtype, m.Upload = files, "file_share", true
		if root != nil {
			m.ThreadTS, m.ParentUserID = root.TS, root.User
		}
		c.w.Post(ch, m)
	}, nil
}

func filesInfo(c *call) (store.Object, error) {
	f := c.w.Files[c.arg("file")]
	if f == nil || !f.Complete {
		return nil, slackerr.New("file_not_found")
	}
	return store.Object{"file": f.File}, nil
}
