package permission

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"the-loop/sessions"
)

// maxSocketPath is the longest path of a Unix socket (unix(7): 108 bytes, macOS 104).
const maxSocketPath = 103

// SocketPath returns the socket of the hook that waits for a decision. The path does not tell the token.
func SocketPath(dir, token string) string {
	sum := sha256.Sum256([]byte(token))
	return filepath.Join(dir, hex.EncodeToString(sum[:8]))
}

// shortSocketPath returns a name of a path that a socket may have: where the path is too long, one through a descriptor of its
// folder, which works on Linux. The caller closes the folder when the socket was made or dialled.
func shortSocketPath(path string) (name string, dir io.Closer, err error) {
	if len(path) <= maxSocketPath {
		return path, io.NopCloser(nil), nil
	}
	f, err := os.Open(filepath.Dir(path))
	if err != nil {
		return "", nil, err
	}
	return fmt.Sprintf("/proc/self/fd/%d/%s", f.Fd(), filepath.Base(path)), f, nil
}

// message is what goes over a socket, one JSON object a line. A client sends the token and is told that the request is open; the
// end of the connection says that it is resolved. The client may send a verdict, which is acknowledged.
type message struct {
	Token    string           `json:"token,omitempty"`
	Verdict  sessions.Verdict `json:"verdict,omitempty"`
	Reason   string           `json:"reason,omitempty"`
	Answers  []string         `json:"answers,omitempty"`
	Edits    bool             `json:"acceptEdits,omitempty"`
	Open     bool             `json:"open,omitempty"`
	Accepted bool             `json:"taken,omitempty"`
}
