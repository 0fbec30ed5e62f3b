package envstate

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

// writtenForms are the ways in which programs write a value down.
var writtenForms = map[string]func(string) string{
	"plain": func(s string) string { return s },
	"json":  asJSON,
	"json without html": func(s string) string {
		var b strings.Builder
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		_ = e.Encode(s) // a string encodes
		return strings.TrimSuffix(b.String()[1:], "\"\n")
	},
	"json with slashes": func(s string) string { return strings.ReplaceAll(asJSON(s), "/", `\/`) },
	"json in numbers": func(s string) string {
		var b strings.Builder
		for _, u := range utf16.Encode([]rune(s)) {
			fmt.Fprintf(&b, `\u%04x`, u)
		}
		return b.String()
	},
	"go":             func(s string) string { return strings.Trim(strconv.QuoteToASCII(s), `"`) },
	"query":          url.QueryEscape,
	"path":           url.PathEscape,
	"percent":        func(s string) string { return formatBytes(s, "%%%02X") },
	"percent small":  func(s string) string { return formatBytes(s, "%%%02x") },
	"bytes":          func(s string) string { return formatBytes(s, `\x%02x`) },
	"octal":          func(s string) string { return formatBytes(s, `\%03o`) },
	"html":           html.EscapeString,
	"html numbers":   func(s string) string { return formatRunes(s, "&#%d;") },
	"slack":          strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace,
	"shell":          func(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" },
	"shell, double":  func(s string) string { return `'` + strings.ReplaceAll(s, `'`, `'"'"'`) + `'` },
	"shell, slashes": func(s string) string { return withBackslashes(s, " !\"#$%&'()*,/:;<=>?@[\\]^`{|}~") },
	"shell, in \"":   func(s string) string { return `"` + withBackslashes(s, "\"$`\\") + `"` },
	"markdown":       func(s string) string { return withBackslashes(s, "\\`*_{}[]()#+-.!|<>~") },
	"hex":            func(s string) string { return hex.EncodeToString([]byte(s)) },
	"HEX":            func(s string) string { return strings.ToUpper(hex.EncodeToString([]byte(s))) },
	"base64":         func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) },
	"base64 +1":      func(s string) string { return base64.StdEncoding.EncodeToString([]byte(":" + s + "\n")) },
	"base64 +2":      func(s string) string { return base64.URLEncoding.EncodeToString([]byte("u:" + s + ",")) },
}

func asJSON(s string) string {
	raw, _ := json.Marshal(s) // a string encodes
	return string(raw[1 : len(raw)-1])
}

func formatBytes(s, format string) string {
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, format, s[i])
	}
	return b.String()
}

func formatRunes(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		fmt.Fprintf(&b, format, r)
	}
	return b.String()
}

func withBackslashes(s, special string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(special, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// wrappedScreen is a text as a terminal of some width shows it, and what takes the lines together again.
type wrappedScreen struct {
	width               int
	before, after, line string
}

func (s wrappedScreen) show(text string) string {
	var lines []string
	for r := []rune(text); len(r) > 0; {
		n := min(s.width, len(r))
		lines = append(lines, s.before+string(r[:n])+s.after)
		r = r[n:]
	}
	return strings.Join(lines, s.line)
}

func (s wrappedScreen) join(text string) string {
	return strings.ReplaceAll(text, s.after+s.line+s.before, "")
}

func drawScreen(t *rapid.T) wrappedScreen {
	return wrappedScreen{
		width:  rapid.IntRange(3, 200).Draw(t, "width"),
		before: rapid.SampledFrom([]string{"", "  ", "│ ", "    > ", "  ⎿  ", "| "}).Draw(t, "before"),
		after:  rapid.SampledFrom([]string{"", " │", "│", " |"}).Draw(t, "after"),
		line:   rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "line"),
	}
}

// However a value is written, written again, and broken into lines: it is gone, and what stands around it is not.
func TestAValueIsFoundInEveryForm(t *testing.T) {
	t.Parallel()
	names := make([]string, 0, len(writtenForms))
	for name := range writtenForms {
		names = append(names, name)
	}
	outer := []string{"plain", "json", "json with slashes", "query", "html", "slack", "shell", "go"}
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringMatching(`[G-Zg-z][A-Za-z0-9]{5}[!-~é€😀]{2,24}( [G-Zg-z])?[A-Za-z0-9]{4}`).Draw(t, "secret")
		first := rapid.SampledFrom(names).Draw(t, "first")
		second := rapid.SampledFrom(outer).Draw(t, "second")
		written := writtenForms[second](writtenForms[first](secret))
		on := drawScreen(t)
		head := rapid.SampledFrom([]string{"", "see: ", `{"key":"`, "KEY=", "100%", `\n`, `"`}).Draw(t, "head")
		tail := rapid.SampledFrom([]string{"", ", and more", `"}`, "\n", "%"}).Draw(t, "tail")
		got := Scrub(on.show(head+written+tail), map[string]string{"KEY": secret, "OTHER": "something else"})
		if !strings.Contains(got, "[KEY]") || strings.Contains(on.join(got), strings.Trim(written, `'"`)) {
			t.Fatalf("%s of %s of %q: %q became %q", second, first, secret, on.show(head+written+tail), got)
		}
		if form, _ := normalize(got, true); strings.Contains(string(form), normalForm(secret, true)) {
			t.Fatalf("%s of %s of %q is left in %q", second, first, secret, got)
		}
		if strings.Contains(tail, "more") && !strings.Contains(on.join(got), "more") {
			t.Fatalf("%q lost what stands around the value", got)
		}
	})
}

// Each line of a value of several is a secret of its own, and so is the whole in one line.
func TestAKeyIsFoundLineByLineAndInOneLine(t *testing.T) {
	t.Parallel()
	key := "-----BEGIN KEY-----\nMIIEvQIBADAN/Bgkqh+kiG9w0\nab\nkSecretTail9Zg==\n-----END KEY-----\n"
	s := NewScrubber(map[string]string{"PEM": key})
	for text, want := range map[string]string{
		"a MIIEvQIBADAN/Bgkqh+kiG9w0":                                     "a [PEM]",
		`a MIIEvQIBADAN\/Bgkqh\u002bkiG9w0`:                               "a [PEM]",
		"  kSecretTail9Zg==  ":                                            "  [PEM]  ",
		`{"k":"` + asJSON(key) + `"}`:                                     `{"k":"[PEM]\n"}`,
		url.QueryEscape(key):                                              "[PEM]%0A",
		base64.StdEncoding.EncodeToString([]byte(strings.TrimSpace(key))): "[PEM]0=",
	} {
		if got := s.Scrub(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

// What only looks like a value stays.
func TestOrdinaryTextStays(t *testing.T) {
	t.Parallel()
	s := NewScrubber(map[string]string{"KEY": "s3cr3t-Value/1", "URL": "https://u:p%40ss@host/?a=1&b=2", "QUOTES": `"'"'"'"'`, "SPREAD": "a b c d"})
	for _, text := range []string{"", "s3cr3t", "s3cr3t-Value 2", `\u0026 \" \\ 100% &amp; &; %zz \x \u12`, "https://host/?a=1&b=2", "abcd", "'\"\\\n│ │"} {
		if got := s.Scrub(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}

func FuzzScrub(f *testing.F) {
	for _, seed := range []string{`\u005cu0041\\\\x41%5cn&amp;amp;#38;`, "\\\n│ u00", `\ud83d\ude00`, "%%%414", `\\\\\101`, "&#xffffffff;", "\xff\xed\xa0\xbd\\ude00"} {
		f.Add("abcdef"+seed, seed+"x abcdef")
	}
	f.Fuzz(func(t *testing.T, value, text string) {
		s := NewScrubber(map[string]string{"K": value})
		if got := s.Scrub(text + value + text); len(strings.TrimSpace(value)) >= 4*minSecret && strings.Contains(got, strings.TrimSpace(value)) {
			t.Fatalf("%q left in %q", value, got)
		}
	})
}
