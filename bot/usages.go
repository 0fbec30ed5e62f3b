package bot

// Usage is a verb of the slash command, as its help has it.
type Usage struct{ Verb, Args, Description string }

// Usages are the verbs of the slash command, in the order of its help.
func Usages() []Usage {
	all := make([]Usage, 0, len(usages))
	for _, u := range usages {
		all = append(all, Usage{Verb: u.verb, Args: u.words, Description: u.what})
	}
	return all
}

// MessageShortcuts are the app's entries in the menu of a message: their names, by callback id.
func MessageShortcuts() map[string]string {
	names := map[string]string{}
	for _, s := range shortcuts {
		if s.Type == "message" {
			names[s.CallbackID] = s.Name
		}
	}
	return names
}
