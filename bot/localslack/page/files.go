package page

import (
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
	"the-loop/bot/localslack/webapi"
)

// inlineImageTypes are the types that are shown as a picture; everything else is only ever downloaded.
var inlineImageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// servePageFile is a file of the workspace, for people who are in a channel where it was shared.
func (p *Page) servePageFile(rw http.ResponseWriter, r *http.Request) {
	f, ok := p.file(r.PathValue("id"))
	if !ok {
		http.NotFound(rw, r)
		return
	}
	kind, disposition := http.DetectContentType(f.Content), "inline"
	if !slices.Contains(inlineImageTypes, kind) || r.URL.Query().Get("download") != "" {
		kind, disposition = "application/octet-stream", "attachment"
	}
	rw.Header().Set("Content-Type", kind)
	rw.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	rw.Header().Set("Content-Disposition", mime.FormatMediaType(disposition, map[string]string{"filename": f.Name}))
	_, _ = rw.Write(f.Content) // the browser may be gone
}

func (p *Page) file(id string) (store.File, bool) {
	p.w.Mu.Lock()
	defer p.w.Mu.Unlock()
	f := p.w.Files[id]
	if f == nil || !f.Complete {
		return store.File{}, false
	}
	return f.File, true
}

// maxFilesPerMessage is the most files of one message.
const maxFilesPerMessage = 10

// servePostFiles is a message with files, as a form: as, channel, thread, text, and files.
func (p *Page) servePostFiles(rw http.ResponseWriter, r *http.Request) {
	if err := r.ParseMultipartForm(8 << 20); err != nil {
		http.Error(rw, "the form cannot be read", http.StatusBadRequest)
		return
	}
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	me, err := p.persona(r.FormValue("as"))
	if err != nil {
		writeFailure(rw, err)
		return
	}
	files, err := readFormFiles(r.MultipartForm.File["files"])
	if err != nil {
		writeFailure(rw, err)
		return
	}
	ts, err := send(me, r.FormValue("channel"), r.FormValue("thread"), r.FormValue("text"), localslack.WithFiles(files...))
	if err != nil {
		writeFailure(rw, err)
		return
	}
	webapi.WriteJSON(rw, http.StatusOK, store.Object{"ok": true, "result": store.Object{"ts": ts}})
}

func readFormFiles(headers []*multipart.FileHeader) (files []store.File, err error) {
	if len(headers) == 0 || len(headers) > maxFilesPerMessage {
		return nil, slackerr.Refusedf("a message has one to %d files", maxFilesPerMessage)
	}
	for _, h := range headers {
		f, err := h.Open()
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(f)
		_ = f.Close()
		if err != nil {
			return nil, err
		}
		files = append(files, store.File{Name: h.Filename, Mimetype: http.DetectContentType(data), Content: data})
	}
	return files, nil
}
