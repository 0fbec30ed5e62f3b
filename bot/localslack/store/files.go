package store

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// StoredFile is a file and, before completeUploadExternal, an upload under way. The store's Mu guards it.
type StoredFile struct {
	File
	Complete bool
}

// StoreFiles gives the files of a message ids and URLs. The caller holds Mu.
func (w *Store) StoreFiles(ch *ChannelState, m *Message) {
	m.Files = slices.Clone(m.Files)
	for i := range m.Files {
		f := &m.Files[i]
		f.User = m.User
		f.MarkSharedIn(ch)
		w.StoreFile(f)
	}
}

// MarkSharedIn notes where a file can be seen.
func (f *File) MarkSharedIn(ch *ChannelState) {
	switch ch.Kind {
	case PublicChannel:
		f.IsPublic, f.Channels = true, append(f.Channels, ch.ID)
	case DirectMessage:
		f.IMs = append(f.IMs, ch.ID)
	default:
		f.Groups = append(f.Groups, ch.ID)
	}
}

// StoreFile gives a file what it lacks, such as an id and URLs, and keeps it. The caller holds Mu.
func (w *Store) StoreFile(f *File) {
	f.Channels, f.Groups, f.IMs = append([]string{}, f.Channels...), append([]string{}, f.Groups...), append([]string{}, f.IMs...)
	if f.ID == "" {
		f.ID = w.NewID("F")
	}
	f.Created, f.Size = w.Clock.Now().Unix(), max(f.Size, len(f.Content))
	f.Filetype = strings.TrimPrefix(path.Ext(f.Name), ".")
	f.PrettyType = strings.ToUpper(f.Filetype)
	address := url.PathEscape(path.Base("/" + f.Name))
	SetDefault(&f.Permalink, "https://"+w.Opts.TeamDomain+".slack.com/files/"+f.User+"/"+f.ID+"/"+address)
	SetDefault(&f.Title, f.Name)
	SetDefault(&f.Mimetype, "text/plain")
	SetDefault(&f.Mode, "hosted")
	SetDefault(&f.URLPrivate, w.BaseURL+"/files/"+f.ID+"/"+address)
	SetDefault(&f.URLPrivateDownload, f.URLPrivate)
	w.Files[f.ID] = &StoredFile{File: *f, Complete: true}
}
