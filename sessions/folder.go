package sessions

import "context"

// FolderRequest asks where a session works.
type FolderRequest struct {
	Ref Ref
	ID  string // the session that is meant; empty: whichever has the ref now
}

// Folder is the folder that a running session was started in, absolute. A [*Refusal] when it does not run, or another
// session has its name.
func (c *Core) Folder(ctx context.Context, q FolderRequest) (string, error) {
	rec, err := c.running(ctx, q.Ref, q.ID)
	if err != nil {
		return "", err
	}
	return rec.Definition.Cwd, nil
}
