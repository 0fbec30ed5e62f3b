package localslack

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// newID returns an id as Slack's look: a letter or two, then capitals and digits. The caller holds mu, or is New.
func (w *Workspace) newID(prefix string) string {
	w.lastID++
	n := strings.ToUpper(strconv.FormatInt(0x5_0000_0000+w.lastID*7919, 36))
	return prefix + "0" + fmt.Sprintf("%09s", n)
}

// newTS returns the next timestamp: the clock's, made unique and increasing. The caller holds mu.
func (w *Workspace) newTS() string {
	now := w.clock.Now().UnixMicro()
	if now <= w.lastTS {
		now = w.lastTS + 1
	}
	w.lastTS = now
	return formatTS(now)
}

func formatTS(micro int64) string {
	return fmt.Sprintf("%d.%06d", micro/1e6, micro%1e6)
}

// parseTS reads a Slack timestamp in microseconds; ok is false for anything else.
func parseTS(ts string) (micro int64, ok bool) {
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
	micro, ok := parseTS(ts)
	if !ok {
		return time.Time{}
	}
	return time.UnixMicro(micro)
}

func newUUID() string {
	b := randomBytes(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func randomHex(n int) string { return hex.EncodeToString(randomBytes(n)) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand since Go 1.24)
	return b
}

// appIDFromToken reads the app's id out of xapp-1-A…-….
func appIDFromToken(token string) string {
	parts := strings.Split(token, "-")
	if len(parts) >= 4 && strings.HasPrefix(parts[2], "A") {
		return parts[2]
	}
	return "A0LOCALAPP1"
}
