package render

import (
	"net/url"
	"path"
	"regexp"
	"strings"
	"sync"
)

// link adds a link. One whose scheme is not known to be harmless is shown as text with its address; so is one whose label
// reads like another address than the one it leads to, with the address as a link.
func (g *gatherer) link(address, label string, st emphasis) {
	target, ok := safeURL(address)
	switch {
	case !ok:
		g.textLink(address, label, st)
	case escapedLen(target)+escapedLen(label) > g.limit/2:
		g.add(span{text: strings.TrimSpace(label+" "+address) + " ", style: st})
	case label == "" || label == address || "mailto:"+label == address:
		g.add(span{text: strings.TrimPrefix(address, "mailto:"), url: target, style: st})
	case isMisleading(label, target):
		g.add(span{text: label + " (", style: st})
		g.add(span{text: address, url: target, style: st})
		g.add(span{text: ")", style: st})
	default:
		g.add(span{text: label, url: target, style: st})
	}
}

func (g *gatherer) textLink(address, label string, st emphasis) {
	switch {
	case address == "" || address == label:
		g.add(span{text: label, style: st})
	case label == "", strings.HasSuffix(strings.Replace(address, "#L", ":", 1), label):
		g.code(address, st) // retry.go:48, of client/retry.go#L48
	default:
		g.add(span{text: label + " (", style: st})
		g.code(address, st)
		g.add(span{text: ")", style: st})
	}
}

var urlEscaper = strings.NewReplacer(" ", "%20", "\t", "%09", "\n", "%0A", "<", "%3C", ">", "%3E", "|", "%7C", `"`, "%22", "`", "%60")

// What holds many letters is compiled when it is needed: an agent's hook, which is this program too, must start fast.
var mailPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[\p{L}\p{N}._%+-]+@[\p{L}\p{N}.-]+$`) })

// safeURL is address with what would end a link in Slack encoded; ok only for http, https and mailto.
func safeURL(address string) (safe string, ok bool) {
	safe = urlEscaper.Replace(address)
	u, err := url.Parse(safe)
	if err != nil {
		return "", false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return safe, u.Hostname() != ""
	case "mailto":
		return safe, mailPattern().MatchString(u.Opaque)
	}
	return "", false
}

var (
	foldDots    = strings.NewReplacer("。", ".", "．", ".", "․", ".", "｡", ".", "∕", "/", "⁄", "/", "：", ":")
	hostPattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)^(?:[a-z][a-z0-9+.-]*:/*)?(?:[^/?#\s]*@)?([\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{M}\p{N}_-]+)*\.(?:\p{L}{2,}|xn--[a-z0-9-]+|[0-9]+))\.?(?::[0-9]*)?(?:[/?#].*)?$`)
	})
)

// isMisleading reports a label with a word in it that reads like an address of another host than target's. The name of the
// file that target ends with does not count, though README.md could be a host.
func isMisleading(label, target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return true
	}
	host, file, mailbox := hostOf(u), strings.ToLower(path.Base(u.Path)), strings.ToLower(u.Opaque)
	for _, word := range strings.Fields(strings.ToLower(foldDots.Replace(label))) {
		word = strings.Trim(word, `.,;:!?'"()[]{}<>*_~`+"`“”‘’«»…")
		m := hostPattern().FindStringSubmatch(word)
		if m == nil || !strings.ContainsAny(word, "/@") && (isSourceFile(m[1]) || word == file && fileSuffixTLDs[path.Ext(word)]) {
			continue
		}
		if strings.Contains(word, "@") && (mailbox != "" && word != mailbox || strings.Contains(word, "://")) {
			return true
		}
		if named := strings.TrimPrefix(m[1], "www."); host != named && !strings.HasSuffix(host, "."+named) {
			return true
		}
	}
	return false
}

func hostOf(u *url.URL) string {
	host := u.Hostname()
	if at := strings.LastIndexByte(u.Opaque, '@'); at >= 0 {
		host = u.Opaque[at+1:]
	}
	return strings.TrimPrefix(strings.ToLower(strings.TrimSuffix(host, ".")), "www.")
}

// fileSuffixTLDs are endings of files that are also top-level domains.
var fileSuffixTLDs = map[string]bool{".md": true, ".py": true, ".rs": true, ".sh": true, ".pl": true, ".cc": true, ".ps": true, ".so": true, ".zip": true}

// isSourceFile reports the name of a file whose ending is no top-level domain.
func isSourceFile(word string) bool {
	switch path.Ext(word) {
	case ".c", ".cfg", ".cpp", ".cs", ".css", ".csv", ".go", ".gz", ".h", ".hpp", ".html", ".ini", ".java", ".js", ".json",
		".jsx", ".kt", ".lock", ".log", ".mod", ".png", ".rb", ".sql", ".sum", ".svg", ".swift", ".toml", ".ts", ".tsx",
		".txt", ".xml", ".yaml", ".yml":
		return true
	}
	return !strings.ContainsFunc(path.Ext(word), func(r rune) bool { return r != '.' && (r < '0' || r > '9') }) && strings.Count(word, ".") < 3
}
