package reconcile

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"the-loop/bot/render"
	"the-loop/sessions"
	"the-loop/sessions/envstate"
)

// encodings are some of the ways in which a value stands in a text; envstate's own tests have all of them.
func encodings(secret string) map[string]string {
	inJSON, _ := json.Marshal(map[string]string{"key": secret}) // a string encodes
	half := len(secret) / 2
	return map[string]string{
		"plain": "see " + secret + ".", "json": string(inJSON), "slashes": strings.ReplaceAll(string(inJSON), "/", `\/`),
		"wrapped": "│ " + secret[:half] + " │\n│ " + secret[half:] + " │", "query": "https://host/?k=" + url.QueryEscape(secret),
		"base64": base64.StdEncoding.EncodeToString([]byte("user:" + secret)), "shell": "k='" + strings.ReplaceAll(secret, "'", `'\''`) + "'",
		"slack": "see " + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(secret),
	}
}

// containsSecret reports what of a value can be found in a text, by undoing what a program does that reads it.
func containsSecret(text, secret string) bool {
	for name, form := range encodings(secret) {
		if name == "wrapped" {
			form = secret
		}
		if strings.Contains(strings.ReplaceAll(text, " │\n│ ", ""), form) {
			return true
		}
	}
	var decoded any
	if json.Unmarshal([]byte(text), &decoded) == nil {
		again, _ := json.Marshal(decoded)
		return strings.Contains(string(again), secret)
	}
	return false
}

func drawSecret(t *rapid.T) string {
	return rapid.StringMatching(`[G-Zg-z][A-Za-z0-9]{7}[A-Za-z0-9/+=&<"'$_.-]{4,20}[A-Za-z0-9]{4}`).Draw(t, "secret")
}

// What the bot makes of an agent's texts is scrubbed before it is cut, so that none is hidden in two halves.
func TestAgentTextsAreScrubbedBeforeTheyAreCut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := drawSecret(t)
		scrub := envstate.NewScrubber(map[string]string{"KEY": secret}).Scrub
		b := Texts{Scrub: scrub}
		pad := strings.Repeat("x", rapid.IntRange(0, 3200).Draw(t, "pad")) + "\n"
		for name, text := range encodings(secret) {
			answer := b.Answer("standing:a", sessions.AgentMessage{Text: pad + text})
			question := b.Permission("standing:a", sessions.PermissionRequest{Tool: text, Command: pad + text, File: text, Cwd: text, Explanation: text, Input: text,
				Diff: pad + text, Plan: text, CwdTargets: []string{text}, FileTargets: []string{text}})
			asked := b.Permission("standing:a", sessions.PermissionRequest{Questions: []sessions.Question{{Text: pad + text, Header: text,
				Options: []sessions.QuestionOption{{Label: text, Description: text}}}}})
			if asked.Whole || asked.File != nil || !strings.Contains(asked.Text, "A value of the environment is in it") {
				t.Fatalf("a question with %q in it could be answered", secret)
			}
			made := append(answer.Texts, question.Text, question.TextWithFile, asked.Text, b.Dialog(strings.Split(text, "\n")), render.ParseScreen(pad+text).Scrubbed(scrub).Text())
			if question.File != nil {
				made = append(made, question.File.Content)
			}
			if answer.FullText != nil {
				made = append(made, answer.FullText.Content)
			}
			for _, m := range made {
				if containsSecret(m, secret) || containsSecret(strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(m), secret) {
					t.Fatalf("%s of %q is shown in %q", name, secret, m)
				}
			}
		}
	})
}
