package chat

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// CompareTS orders Slack's message timestamps, "seconds.microseconds". They are identities too: no float is made of one.
func CompareTS(a, b string) int {
	as, af, _ := strings.Cut(a, ".")
	bs, bf, _ := strings.Cut(b, ".")
	if c := cmp.Compare(len(as), len(bs)); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(as, bs), cmp.Compare(af, bf))
}

// MaxTS returns the later of two ts.
func MaxTS(a, b string) string {
	if CompareTS(a, b) >= 0 {
		return a
	}
	return b
}

// TSTime is the moment of a message by Slack's clock; zero when ts is not one.
func TSTime(ts string) time.Time {
	s, f, _ := strings.Cut(ts, ".")
	sec, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}
	}
	micro, _ := strconv.ParseInt(f, 10, 64)
	return time.Unix(sec, micro*int64(time.Microsecond))
}

// TimeTS is the timestamp that a message of that moment would have.
func TimeTS(t time.Time) string {
	return fmt.Sprintf("%d.%06d", t.Unix(), t.Nanosecond()/int(time.Microsecond))
}
