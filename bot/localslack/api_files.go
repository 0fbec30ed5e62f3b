package localslack

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"

	"the-loop/bot/localslack/slackerr"
)

const signInPage = "<!DOCTYPE html><html><head><title>Sign in to Slack | Slack</title></head><body><h1>Sign in to your workspace</h1></body></html>"

// storedFile is a file and, before completeUploadExternal, an upload under way. The workspace's mu guards it.
type storedFile struct {
	File
	complete bool
}

// storeFiles gives the files of a message ids and URLs. The caller holds mu.
func (w *Store) storeFiles(ch *channelState, m *Message) {
	m.Files = slices.Clone(m.Files)
	for i := range m.Files {
		f := &m.Files[i]
		f.User = m.User
		f.markSharedIn(ch)
		w.storeFile(f)
	}
}

// markSharedIn notes where a file can be seen.
func (f *File) markSharedIn(ch *channelState) {
	switch ch.kind {
	case PublicChannel:
		f.IsPublic, f.Channels = true, append(f.Channels, ch.id)
	case DirectMessage:
		f.IMs = append(f.IMs, ch.id)
	default:
		f.Groups = append(f.Groups, ch.id)
	}
}

func (w *Store) storeFile(f *File) {
	f.Channels, f.Groups, f.IMs = append([]string{}, f.Channels...), append([]string{}, f.Groups...), append([]string{}, f.IMs...)
	if f.ID == "" {
		f.ID = w.newID("F")
	}
	f.Created, f.Size = w.clock.Now().Unix(), max(f.Size, len(f.Content))
	f.Filetype = strings.TrimPrefix(path.Ext(f.Name), ".")
	f.PrettyType = strings.ToUpper(f.Filetype)
	address := url.PathEscape(path.Base("/" + f.Name))
	setDefault(&f.Permalink, "https://"+w.opts.TeamDomain+".slack.com/files/"+f.User+"/"+f.ID+"/"+address)
	setDefault(&f.Title, f.Name)
	setDefault(&f.Mimetype, "text/plain")
	setDefault(&f.Mode, "hosted")
	setDefault(&f.URLPrivate, w.baseURL+"/files/"+f.ID+"/"+address)
	setDefault(&f.URLPrivateDownload, f.URLPrivate)
	w.files[f.ID] = &storedFile{File: *f, complete: true}
}

// serveFile is url_private: without a token that may read files, a sign-in page with status 200.
func (w *API) serveFile(rw http.ResponseWriter, r *http.Request) {
	seq := w.logRequest("file", map[string]string{"id": r.PathValue("id")})
	fault := w.faults.takeForMethod("file")
	if fault.appliesBefore() {
		w.finishRequest(seq, fault.status, false, fault.code, fault.name)
		if fault.applyBefore(w.clock, rw, r) {
			return
		}
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	w.mu.Lock()
	f := w.files[r.PathValue("id")]
	allowed := token == w.opts.BotToken && w.tokenErrors[token] == "" && slices.Contains(w.opts.Scopes, "files:read")
	w.mu.Unlock()
	switch {
	case !allowed:
		rw.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = rw.Write([]byte(signInPage)) // the client may be gone
		w.finishRequest(seq, http.StatusOK, false, "sign_in", "")
	case f == nil:
		http.NotFound(rw, r)
		w.finishRequest(seq, http.StatusNotFound, false, "file_not_found", "")
	default:
		rw.Header().Set("Content-Type", f.Mimetype)
		rw.Header().Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": path.Base("/" + f.Name)}))
		_, _ = rw.Write(f.Content) // the client may be gone
		w.finishRequest(seq, http.StatusOK, true, "", "")
	}
}

func filesGetUploadURL(c *call) (jsonObject, error) {
	w := c.w
	size, err := strconv.Atoi(c.arg("length"))
	if err != nil || size <= 0 || c.arg("filename") == "" {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] missing required field: filename or length")
	}
	f := &storedFile{File: File{ID: w.newID("F"), Name: c.arg("filename"), User: w.botUser, Size: size}}
	w.files[f.ID] = f
	return jsonObject{"upload_url": w.baseURL + "/upload/" + f.ID, "file_id": f.ID}, nil
}

// serveUpload takes the bytes of an upload, raw or as a multipart form.
func (w *API) serveUpload(rw http.ResponseWriter, r *http.Request) {
	seq := w.logRequest("upload", map[string]string{"id": r.PathValue("id")})
	if fault := w.faults.takeForMethod("upload"); fault.appliesBefore() {
		w.finishRequest(seq, fault.status, false, fault.code, fault.name)
		if fault.applyBefore(w.clock, rw, r) {
			return
		}
	}
	data, err := readUpload(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	f := w.files[r.PathValue("id")]
	switch {
	case err != nil || f == nil || f.complete:
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
func filesCompleteUpload(c *call) (jsonObject, error) {
	var list []struct{ ID, Title string }
	if json.Unmarshal([]byte(c.arg("files")), &list) != nil || len(list) == 0 {
		return nil, slackerr.WithMessages("invalid_arguments", "[ERROR] missing required field: files")
	}
	var files []File
	for _, item := range list {
		f := c.w.files[item.ID]
		if f == nil || f.complete || f.Content == nil {
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
		c.w.storeFile(&files[i])
	}
	post()
	return jsonObject{"files": files}, nil
}

// prepareShare makes ready to post files in a channel or thread; without a channel nobody sees them.
func (c *call) prepareShare(files []File) (post func(), err error) {
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
		files[i].markSharedIn(ch)
	}
	return func() {
		m := c.w.newBotMessage(messageContent{text: c.arg("initial_comment")})
		m.Files, m.Subtype, m.Upload = files, "file_share", true
		if root != nil {
			m.ThreadTS, m.ParentUserID = root.TS, root.User
		}
		c.w.post(ch, m)
	}, nil
}

func filesInfo(c *call) (jsonObject, error) {
	f := c.w.files[c.arg("file")]
	if f == nil || !f.complete {
		return nil, slackerr.New("file_not_found")
	}
	return jsonObject{"file": f.File}, nil
}
