package sessions

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"the-loop/sessions/envstate"
)

// DriftState says whether a running session holds what the env file declares.
type DriftState string

// The states of a running session's environment.
const (
	DriftCurrent DriftState = "current"
	DriftStale   DriftState = "stale"
	DriftUnknown DriftState = "unknown" // what its process holds cannot be read
)

// Drift is how the environments of the running sessions compare with the env file. It holds names and no value.
type Drift struct {
	Configured bool       `json:"configured"` // env.file is set; else nothing is compared
	Running    int        `json:"running"`
	Stale      int        `json:"stale"`
	Unknown    int        `json:"unknown"`
	Rows       []DriftRow `json:"sessions"`
	Problem    string     `json:"problem,omitempty"` // why nothing could be compared
	Malformed  []int      `json:"malformedLines,omitempty"`
	Refused    []string   `json:"refused,omitempty"` // names that the env file declares and that no pane gets
	Warning    string     `json:"warning,omitempty"` // of who may read the file

	Starting int `json:"-"` // sessions that are on their way up, or down and up again: they may count nowhere else
	// ChangeCount counts how often the file was found to declare something else than before, by this core.
	ChangeCount int `json:"-"`
}

// DriftRow is one running session.
type DriftRow struct {
	Ref        Ref        `json:"ref"`
	ID         string     `json:"id"`
	TmuxTarget string     `json:"tmuxTarget"`
	State      DriftState `json:"state"`
	Stale      []string   `json:"stale"` // names, in name order
}

// StatusLine is the one line that status has of it, and empty while nothing is stale.
func (d Drift) StatusLine() string {
	if d.Stale == 0 {
		return ""
	}
	return fmt.Sprintf("sessions %d of %d running with a stale environment — `the-loop sessions restart --all`", d.Stale, d.Running)
}

// Drift compares what every running session holds with what the env file declares, with one look at tmux. It never fails:
// what cannot be known is a row that says so, or [Drift.ProblemAt].
func (c *Core) Drift(ctx context.Context) Drift {
	return c.computeDrift(func(d *Drift, declared map[string]string) error {
		f, err := c.inventory(ctx)
		if err != nil {
			return err
		}
		return d.compare(ctx, c, f, declared)
	})
}

// computeDrift reads the env file, and has the sessions compared with it where there is one.
func (c *Core) computeDrift(compare func(d *Drift, declared map[string]string) error) Drift {
	d := Drift{Rows: []DriftRow{}}
	env, err := c.o.Config().readEnvFile()
	d.Configured, d.Malformed, d.Refused, d.Warning = env.Configured || err != nil, env.Malformed, env.Refused, env.Warning
	d.ChangeCount = c.envChanges.observe(env.Values, err == nil)
	if err == nil && d.Configured {
		err = compare(&d, env.Values)
	}
	if err != nil {
		d.Problem = err.Error()
	}
	return d
}

// compare looks at what each running session holds. A record that cannot be read is the list's to tell of.
func (d *Drift) compare(ctx context.Context, c *Core, f inventory, declared map[string]string) error {
	if f.timeoutErr != nil {
		return fmt.Errorf("list the panes: %w", f.timeoutErr)
	}
	of := make(map[string]Record, len(f.recs))
	for _, r := range f.recs {
		of[r.ID] = r
		if age := c.o.Now().Sub(r.Changed); r.Status == StatusStarting && age < staleStartAge {
			d.Starting++
		}
	}
	for _, p := range f.panes {
		if r, ours := of[p.Mark]; ours && !p.Dead {
			d.add(c.compareSession(ctx, r, p, declared))
		}
	}
	slices.SortFunc(d.Rows, func(a, b DriftRow) int { return cmp.Compare(a.Ref, b.Ref) })
	return nil
}

func (d *Drift) add(r DriftRow) {
	d.Rows = append(d.Rows, r)
	d.Running++
	switch r.State {
	case DriftStale:
		d.Stale++
	case DriftUnknown:
		d.Unknown++
	}
}

// staleStartAge is the age above which a start that has not come to an end was cut short.
const staleStartAge = time.Minute

// freshRunAge is the age of a run below which a difference may be one of a process that is only just being started.
const freshRunAge = 2 * time.Second

// compareSession compares one session. What its harness gives otherwise is asked only when there is a difference.
func (c *Core) compareSession(ctx context.Context, r Record, p Pane, declared map[string]string) DriftRow {
	row := DriftRow{Ref: r.Ref, ID: r.ID, TmuxTarget: r.Ref.TmuxName(), State: DriftCurrent, Stale: []string{}}
	actual, known := envstate.ProcessEnviron(ctx, p.PID)
	all := expectedEnv{declared}
	if known && len(all.diff(p, actual)) == 0 {
		return row
	}
	want, limit := c.expectedEnv(ctx, r, declared), time.Duration(0)
	if c.o.Now().Sub(r.Changed) < freshRunAge {
		limit = envStabiliseTime / 4
	}
	differ, known := want.awaitMatch(ctx, p, limit)
	switch {
	case !known:
		row.State = DriftUnknown
	case len(differ) > 0:
		row.State, row.Stale = DriftStale, differ
	}
	return row
}

func declaredNames(p Pane) []string { return strings.Fields(p.Declared) }

// envChanges remembers a sum of what the env file declared last. It is in memory only and is told to nobody.
type envChanges struct {
	mu    sync.Mutex // guards the fields that follow
	sum   [sha256.Size]byte
	count int
}

// observe is how often the file has changed until now. While it cannot be read it has not.
func (d *envChanges) observe(values map[string]string, known bool) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !known {
		return d.count
	}
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(values)) {
		_, _ = fmt.Fprintf(h, "%s=%s\x00", name, values[name]) // a hash takes everything
	}
	if sum := [sha256.Size]byte(h.Sum(nil)); sum != d.sum {
		d.sum = sum
		d.count++
	}
	return d.count
}
