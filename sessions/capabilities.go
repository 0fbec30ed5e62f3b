package sessions

// The limitations of a harness, in words that follow its name. They are fixed: surfaces show them as they are, and programs may
// compare them.
const (
	LimitationNoTranscript  = "what it says is not posted"
	LimitationNoProof       = "nothing proves that it took a reply"
	LimitationNoScreen      = "its screen is not read, so a reply may answer a question that it asks"
	LimitationNoPermissions = "its questions are answered in the terminal alone"
	LimitationNoResume      = "its conversation is not resumed"
)

// Limitations says what cannot be done with sessions of a harness that can be done with others, the weightiest first.
func Limitations(h Harness) []string {
	can := h.Capabilities()
	var all []string
	for _, l := range []struct {
		what string
		has  bool
	}{
		{LimitationNoScreen, can.ParseScreen != nil}, {LimitationNoTranscript, can.ReadTranscript != nil}, {LimitationNoProof, can.Input != nil},
		{LimitationNoPermissions, can.ReportsPermissions}, {LimitationNoResume, can.CanResume},
	} {
		if !l.has {
			all = append(all, l.what)
		}
	}
	return all
}
