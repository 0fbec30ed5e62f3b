package config

import (
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"

	"the-loop/sessions/envstate"
)

// checkConstraints records what a schema cannot say: what one key demands of another.
func checkConstraints(d *document, raw fileRoot, c *Config) {
	checkNames(d, raw.StandingSessions.Sessions)
	for _, name := range slices.Sorted(maps.Keys(raw.Harnesses)) {
		checkHarness(d, joinKey("harnesses", name), raw.Harnesses[name])
	}
	checkEnvPass(d, c)
	checkSlack(d, c)
	checkReceipts(d, raw.Channels.Slack.Receipts)
	checkListeners(d, c)
}

// checkNames refuses the second of two equal names, naming both places.
func checkNames(d *document, sessions []fileSession) {
	first := map[string]int{}
	for i, s := range sessions {
		key := indexKey("standingSessions.sessions", i) + ".name"
		if j, taken := first[s.Name]; taken {
			other := indexKey("standingSessions.sessions", j) + ".name"
			d.addProblem(key, "%s is already the name of %s at %s:%d — give one of them another name",
				quoteValue(s.Name), other, d.file, findLocation(d.locations, other).line)
			continue
		}
		first[s.Name] = i
	}
}

func indexKey(key string, i int) string { return fmt.Sprintf("%s[%d]", key, i) }

// checkHarness holds a template to what can be filled in.
func checkHarness(d *document, key string, h fileHarness) {
	if h.Args == nil {
		for _, other := range []string{"resumeArgs", "commandPrefixes", "submitDelayMs", "reports"} {
			if _, there := d.locations[key+"."+other]; there {
				d.addProblem(key+"."+other, "needs args beside it — add args, or keep binary alone to replace that of a built-in harness")
			}
		}
		return
	}
	checkTemplate(d, key+".args", h.Args)
	checkTemplate(d, key+".resumeArgs", h.ResumeArgs)
	if h.ResumeArgs == nil {
		return
	}
	for k, args := range map[string][]string{key + ".args": h.Args, key + ".resumeArgs": h.ResumeArgs} {
		if !strings.Contains(strings.Join(args, "\n"), PlaceholderSession) {
			d.addProblem(k, "has no %s, so the conversation to continue is unknown — add it, or remove resumeArgs",
				PlaceholderSession)
		}
	}
}

var placeholderPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{[A-Za-z][A-Za-z0-9_]*\}`) })

func checkTemplate(d *document, key string, args []string) {
	seen := map[string]bool{}
	for i, arg := range args {
		for _, p := range placeholderPattern().FindAllString(arg, -1) {
			at := indexKey(key, i)
			switch {
			case p != PlaceholderSession && p != PlaceholderPrompt && p != PlaceholderArgs:
				d.addProblem(at, "%s is not a placeholder — use %s, %s or %s", quoteValue(p), PlaceholderSession, PlaceholderPrompt, PlaceholderArgs)
			case seen[p]:
				d.addProblem(at, "uses %s a second time — once is allowed", p)
			case arg != p:
				d.addProblem(at, "mixes %s with other text — make it an argument of its own", p)
			}
			seen[p] = true
		}
	}
}

// checkEnvPass refuses names that no agent gets.
func checkEnvPass(d *document, c *Config) {
	for i, name := range c.EnvPass {
		if _, refused := envstate.Split(map[string]string{name: ""}, c.SecretNames()...); len(refused) > 0 {
			d.addProblem(indexKey("env.pass", i), "%s is a variable that no agent gets: it is tmux's, or holds a token of the-loop — remove it", quoteValue(name))
		}
	}
}

func checkSlack(d *document, c *Config) {
	if c.Slack.BotTokenEnv == c.Slack.AppTokenEnv {
		d.addProblem("channels.slack.appTokenEnv", "names the same variable as botTokenEnv — the two tokens need one each")
	}
	if u, err := url.Parse(c.Slack.APIURL); err != nil || u.Hostname() == "" {
		d.addProblem("channels.slack.apiUrl", "is not the address of an API — write http:// or https:// and a host")
	}
	if !c.Slack.Enabled || c.Slack.Channel != "" {
		return
	}
	for _, s := range c.Standing.Sessions {
		if s.Slack.Enabled && s.Slack.Channel == "" {
			d.addProblem("channels.slack.channel", "is missing, and %s (line %d) has no channel of its own — add the id of a channel (C…), or slack: {enabled: false} to the session",
				s.Position.Key, s.Position.Line)
			return
		}
	}
}

// checkReceipts refuses equal emoji: one reaction would say two things, and taking one away would take both.
func checkReceipts(d *document, r fileReceipts) {
	first := map[string]string{}
	for _, e := range []struct{ key, emoji string }{
		{"received", r.Received}, {"typed", r.Typed}, {"accepted", r.Accepted}, {"held", r.Held}, {"failed", r.Failed}, {"inDoubt", r.InDoubt},
	} {
		if other, taken := first[e.emoji]; taken {
			d.addProblem("channels.slack.receipts."+e.key, "is the same emoji as %s — choose another one", other)
			continue
		}
		first[e.emoji] = e.key
	}
}

func checkListeners(d *document, c *Config) {
	s, w := c.Service, c.GitHubWebhook
	if s.Enabled && !s.Exposed && !isLoopback(s.Host) {
		d.addProblem("service.host", "%s can be reached from other machines — use 127.0.0.1, or set service.exposed: true and put a gateway in front that authenticates", quoteValue(s.Host))
	}
	if s.Enabled && w.Enabled && s.Host == w.Host && s.Port == w.Port && s.Port != 0 {
		d.addProblem("webhooks.ghWebhook.port", "is also service.port on the same host — choose another")
	}
}

// isLoopback reports whether only this machine reaches host. A name other than localhost may resolve to anything.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// harnessUse is a place where the file names a harness.
type harnessUse struct{ key, name string }

func findHarnessUses(raw fileRoot) []harnessUse {
	uses := []harnessUse{{"routing.defaultHarness", raw.Routing.DefaultHarness}}
	for _, name := range slices.Sorted(maps.Keys(raw.Routing.HarnessArgs)) {
		uses = append(uses, harnessUse{joinKey("routing.harnessArgs", name), name})
	}
	for i, s := range raw.StandingSessions.Sessions {
		if s.Harness != nil {
			uses = append(uses, harnessUse{indexKey("standingSessions.sessions", i) + ".harness", *s.Harness})
		}
	}
	for i, name := range raw.Channels.Slack.Create.Harnesses {
		uses = append(uses, harnessUse{indexKey("channels.slack.create.harnesses", i), name})
	}
	return uses
}

// CheckHarnesses holds the configuration against the harnesses that are built in: every harness that it names must be one
// of them or declared, a declared one needs args unless it replaces the binary of a built-in one, and must not have them
// if it does, because a template knows nothing of that program's dialogs. The error is an [*Error]. It fits [Loader.Check].
func (c *Config) CheckHarnesses(builtin []string) error {
	var problems []Problem
	known := slices.AppendSeq(slices.Clone(builtin), maps.Keys(c.Harnesses))
	slices.Sort(known)
	known = slices.Compact(known)
	for _, u := range c.harnessUses {
		if !slices.Contains(known, u.name) {
			problems = append(problems, c.ProblemAt(u.key, fmt.Sprintf("%s is not a known harness — use one of %s, or describe it under harnesses",
				quoteValue(u.name), strings.Join(known, ", "))))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Harnesses)) {
		key := joinKey("harnesses", name)
		switch isBuiltin, template := slices.Contains(builtin, name), c.Harnesses[name].Args != nil; {
		case isBuiltin && template:
			problems = append(problems, c.ProblemAt(key+".args", quoteValue(name)+" is built in, only its binary can be replaced — remove args, or choose another name"))
		case !isBuiltin && !template:
			problems = append(problems, c.ProblemAt(key+".args", "is missing — add the arguments of the program, as a list"))
		}
	}
	return joinProblems(problems)
}
