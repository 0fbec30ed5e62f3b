package sessions

// What a harness may lack, in words that follow its name. They are fixed: surfaces show them as they are, and programs may
// compare them.
const (
	LacksAnswers = "what it says is not posted"
	LacksProof   = "nothing proves that it took a reply"
	LacksScreen  = "its screen is not read, so a reply may answer a question that it asks"
	LacksAsks    = "its questions are answered in the terminal alone"
	LacksResume  = "its conversation is not resumed"
)

// Lacks says what cannot be done with sessions of a harness that can be done with others, the weightiest first.
func Lacks(h Harness) []string {
	_, looks := h.(Looker)
	_, proves := h.(Witness)
	_, tells := h.(Teller)
	traits := h.Traits()
	var lacks []string
	for _, l := range []struct {
		what string
		has  bool
	}{{LacksScreen, looks}, {LacksAnswers, tells}, {LacksProof, proves}, {LacksAsks, traits.Asks}, {LacksResume, traits.Resumes}} {
		if !l.has {
			lacks = append(lacks, l.what)
		}
	}
	return lacks
}
