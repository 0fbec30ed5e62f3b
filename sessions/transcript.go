package sessions

import (
	"time"
)

// AgentMessage is one text of an agent's.
type AgentMessage struct {
	Text   string
	Final  bool      // it ends a turn; else the agent said it between two steps
	Failed bool      // it is an error that ended the turn
	At     time.Time // by this machine's clock; zero: not known
	Key    string    // unique within the session, and the same whenever it is read
}

// TranscriptBatch is what an agent said, oldest first.
type TranscriptBatch struct {
	Messages   []AgentMessage
	Next       Offset   // to go on from
	WatchFiles []string // files: as long as none of them changes, there is nothing new
	Turn       Turn     // whether a turn runs, as of Next
}
