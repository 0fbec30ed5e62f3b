package store

import (
	"fmt"
	"strconv"
	"strings"

	"the-loop/bot/localslack/slacktime"
)

// NewID returns an id as Slack's look: a letter or two, then capitals and digits. The caller holds Mu, or is New.
func (w *Base) NewID(prefix string) string {
	w.lastID++
	n := strings.ToUpper(strconv.FormatInt(0x5_0000_0000+w.lastID*7919, 36))
	return prefix + "0" + fmt.Sprintf("%09s", n)
}

// NewTS returns the next timestamp: the clock's, made unique and increasing. The caller holds Mu.
func (w *Base) NewTS() string {
	now := w.Clock.Now().UnixMicro()
	if now <= w.lastTS {
		now = w.lastTS + 1
	}
	w.lastTS = now
	return slacktime.Format(now)
}
