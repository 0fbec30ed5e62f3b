package sessions

// What a harness may lack, in words that follow its name. They are fixed: surfaces show them as they are, and programs may
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
	_, looks := h.(ScreenParser)
	_, proves := h.(InputVerifier)
	_, tells := h.(TranscriptReader)
	traits := h.Capabilities()
	var lacks []string
	for _, l := range []struct {
		what string
		has  bool
	}{{LimitationNoScreen, looks}, {LimitationNoTranscript, tells}, {LimitationNoProof, proves}, {LimitationNoPermissions, traits.ReportsPermissions}, {LimitationNoResume, traits.CanResume}} {
		if !l.has {
			lacks = append(lacks, l.what)
		}
	}
	return lacks
}
