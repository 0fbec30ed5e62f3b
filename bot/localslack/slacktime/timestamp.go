package slacktime

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Format is the timestamp of a time in microseconds.
func Format(micro int64) string {
	return fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6)
}

// Parse reads a Slack timestamp in microseconds; ok is false for anything else.
func Parse(ts string) (micro int64, ok bool) {
	sec, frac, found := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(sec, 10, 64)
	if err != nil || s < 0 {
		return 0, false
	}
	if !found {
		return s * 1e6, true
	}
	frac = (frac + "000000")[:6]
	f, err := strconv.ParseInt(frac, 10, 64)
	if err != nil || f < 0 {
		return 0, false
	}
	return s*1e6 + f, true
}

// TSTime is the time of a Slack timestamp; the zero time for anything else.
func TSTime(ts string) time.Time {
	micro, ok := Parse(ts)
	if !ok {
		return time.Time{}
	}
	return time.UnixMicro(micro)
}
