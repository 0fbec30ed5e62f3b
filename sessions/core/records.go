package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"the-loop/sessions"
)

// records finds the records of sessions, and locks sessions.
type records struct {
	store interface {
		sessions.Records
		sessions.Locker
	}
	config func() Config
	now    func() time.Time
}

// find returns the session's definition, and its record if it has one.
func (rs *records) find(ctx context.Context, ref sessions.Ref) (sessions.Definition, *sessions.Record, error) {
	declared, isDeclared := rs.findDeclared(ref)
	rec, err := rs.store.Load(ctx, ref)
	switch {
	case errors.Is(err, sessions.ErrNotRecorded) && isDeclared:
		return declared, nil, nil
	case errors.Is(err, sessions.ErrNotRecorded):
		return sessions.Definition{}, nil, sessions.NotRecorded(ref)
	case err != nil:
		return sessions.Definition{}, nil, fmt.Errorf("read the record of %s: %w", ref, err)
	case isDeclared:
		return declared, &rec, nil
	}
	return rec.Definition.Clone(), &rec, nil
}

// findExact is [records.find], and refuses a session that does not have that id. The caller holds the lock of the name.
func (rs *records) findExact(ctx context.Context, ref sessions.Ref, id string) (sessions.Definition, *sessions.Record, error) {
	def, rec, err := rs.find(ctx, ref)
	if err == nil && id != "" && (rec == nil || rec.ID != id) {
		err = sessions.Replaced(ref)
	}
	return def, rec, err
}

func (rs *records) findDeclared(ref sessions.Ref) (sessions.Definition, bool) {
	d, i := rs.config().findDeclared(ref)
	return d, i >= 0
}

// require returns the record of a session that must have one.
func (rs *records) require(ctx context.Context, ref sessions.Ref) (sessions.Record, error) {
	_, rec, err := rs.find(ctx, ref)
	switch {
	case err != nil:
		return sessions.Record{}, err
	case rec == nil:
		return sessions.Record{}, sessions.NotRunning(ref)
	}
	return *rec, nil
}

// requireExact is [records.require], and refuses another session that has the ref now. An empty id stands for any.
func (rs *records) requireExact(ctx context.Context, ref sessions.Ref, id string) (sessions.Record, error) {
	rec, err := rs.require(ctx, ref)
	if err == nil && id != "" && rec.ID != id {
		err = sessions.Replaced(ref)
	}
	return rec, err
}

// requireRunning is [records.requireExact] for a session that should be running.
func (rs *records) requireRunning(ctx context.Context, ref sessions.Ref, id string) (sessions.Record, error) {
	rec, err := rs.requireExact(ctx, ref, id)
	if err == nil && rec.IsDown() {
		err = sessions.NotRunning(ref)
	}
	return rec, err
}

// newRecord builds an unsaved record with a new id.
func (rs *records) newRecord(def sessions.Definition) sessions.Record {
	return sessions.Record{Version: sessions.RecordVersion, ID: newID(), Ref: def.Ref(), Definition: def, Created: rs.now()}
}

// reload reads a record again under the session's lock, since it may have changed before.
func (rs *records) reload(ctx context.Context, known *sessions.Record) (*sessions.Record, error) {
	if known == nil {
		return nil, nil
	}
	rec, err := rs.store.Load(ctx, known.Ref)
	if err != nil {
		return nil, fmt.Errorf("read the record of %s: %w", known.Ref, err)
	}
	return &rec, nil
}

// lockName locks the session's name against verbs that create, start, stop or delete it.
func (rs *records) lockName(ctx context.Context, ref sessions.Ref, verb string) (func(), error) {
	key := string(ref)
	if ref.Kind() == sessions.KindWorkItem { // two refs may fall on one name
		key = ref.Slug()
	}
	return rs.store.Lock(ctx, "name:"+key, verb)
}

// lockID locks the session against everything else that types into it, starts or ends it.
func (rs *records) lockID(ctx context.Context, id, verb string) (func(), error) {
	return rs.store.Lock(ctx, id, verb)
}

func newID() string { return uuid.NewString() }
