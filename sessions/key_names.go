package sessions

// The names of keys that a harness's facts are about, see [Capabilities].
const (
	KeyEscape  = "escape"
	KeyUp      = "up"
	KeyDown    = "down"
	KeyTab     = "tab"
	KeyBackTab = "backtab"
)
