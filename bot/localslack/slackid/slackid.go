// Package slackid makes the random ids that Slack gives to envelopes, blocks and tickets.
package slackid

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// UUID is a random id of an envelope, a message of a client or a ticket.
func UUID() string {
	b := randomBytes(16)
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// Hex is n random bytes in hexadecimal digits.
func Hex(n int) string { return hex.EncodeToString(randomBytes(n)) }

func randomBytes(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails (crypto/rand since Go 1.24)
	return b
}

// AppID reads the app's id out of xapp-1-A…-….
func AppID(token string) string {
	parts := strings.Split(token, "-")
	if len(parts) >= 4 && strings.HasPrefix(parts[2], "A") {
		return parts[2]
	}
	return "A0LOCALAPP1"
}
