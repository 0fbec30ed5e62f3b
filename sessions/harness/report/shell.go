package report

import "strings"

// ShellLine returns the line by which a shell runs an agent's hook.
func ShellLine(argv []string) string {
	words := make([]string, 0, len(argv))
	for _, word := range argv {
		words = append(words, "'"+strings.ReplaceAll(word, "'", `'\''`)+"'")
	}
	return strings.Join(words, " ")
}
