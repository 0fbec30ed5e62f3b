package tmux

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// Version is a release of tmux.
type Version struct {
	Text         string // as tmux says it: 3.3a, next-3.5, openbsd-7.4
	Major, Minor int    // of OpenBSD itself for its own tmux
	OpenBSD      bool
}

var versionPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?:tmux )?((?:(next|openbsd)-)?(\d+)\.(\d+)\S*)$`) })

// ParseVersion reads what tmux -V prints. The development version (master) has no number and is refused.
func ParseVersion(text string) (Version, error) {
	text = strings.TrimSpace(text)
	m := versionPattern().FindStringSubmatch(text)
	if m == nil {
		return Version{}, fmt.Errorf("cannot read the version of tmux from %q", text)
	}
	v := Version{Text: m[1], OpenBSD: m[2] == "openbsd"}
	var err error
	if v.Major, err = strconv.Atoi(m[3]); err == nil {
		v.Minor, err = strconv.Atoi(m[4])
	}
	if err != nil {
		return Version{}, fmt.Errorf("cannot read the version of tmux from %q: %w", text, err)
	}
	return v, nil
}

// isSupported: new-session -e and run-shell -C came with 3.2, which OpenBSD had in 6.9.
func (v Version) isSupported() bool {
	if v.OpenBSD {
		return v.Major > 6 || v.Major == 6 && v.Minor >= 9
	}
	return v.Major > 3 || v.Major == 3 && v.Minor >= 2
}
