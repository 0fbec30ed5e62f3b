package attachments

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"the-loop/sessions"
	"the-loop/threads/chat"
)

// safeNames returns names for the files on a disk, in their order and all different, also where case does not count.
func safeNames(files []chat.File) []string {
	names, taken := make([]string, len(files)), map[string]bool{}
	for i, f := range files {
		name := safeName(f.Name)
		stem, ext := cutExtension(name)
		for n := 2; taken[strings.ToLower(name)]; n++ {
			name = stem + "-" + strconv.Itoa(n) + ext
		}
		taken[strings.ToLower(name)], names[i] = true, name
	}
	return names
}

// The lengths of the parts of a name, in bytes. Disks take 255 in all.
const (
	maxStem      = 100
	maxExtension = 16
)

// safeName turns a file's name into one that means nothing to a disk, a shell or an agent.
func safeName(name string) string {
	name = sessions.Clean(name)
	name = name[strings.LastIndexAny(name, `/\`)+1:]
	name = strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("._-+", r) {
			return r
		}
		return '_'
	}, name)
	name = strings.TrimRight(strings.TrimLeft(name, "._-+"), ".")
	stem, ext := cutExtension(name)
	if stem = truncate(stem, maxStem); stem == "" {
		stem = "file"
	}
	if isReserved(stem, ext) {
		stem = "file-" + stem
	}
	return stem + ext
}

// cutExtension splits a name at its last dot. A long extension belongs to the stem.
func cutExtension(name string) (stem, ext string) {
	ext = filepath.Ext(name)
	if len(ext) < 2 || len(ext) > maxExtension {
		return name, ""
	}
	return strings.TrimSuffix(name, ext), ext
}

func truncate(text string, n int) string {
	for len(text) > n {
		_, size := utf8.DecodeLastRuneInString(text)
		text = text[:len(text)-size]
	}
	return text
}

// agentInstructionFiles are files that agents read unasked, and obey.
var agentInstructionFiles = []string{"claude.md", "claude.local.md", "agents.md", "agent.md", "gemini.md", "opencode.json", "opencode.jsonc"}

// isReserved reports the names of devices (on some systems with any extension), and those of agents' instructions.
func isReserved(stem, ext string) bool {
	device, _, _ := strings.Cut(strings.ToLower(stem), ".")
	if n := len(device); n == 4 && (device[:3] == "com" || device[:3] == "lpt") && device[3] >= '0' && device[3] <= '9' {
		return true
	}
	return slices.Contains([]string{"con", "prn", "aux", "nul"}, device) || slices.Contains(agentInstructionFiles, strings.ToLower(stem+ext))
}

// Label is how a file is called in a text.
func Label(name string) string {
	name = oneLine(name)
	if name == "" {
		return "a file"
	}
	return sessions.Truncate(name, 200)
}

func oneLine(text string) string { return strings.Join(strings.Fields(sessions.Clean(text)), " ") }
