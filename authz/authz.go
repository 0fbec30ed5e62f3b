// Package authz decides who may do what. It is pure, and it fails closed: an empty list lets nobody in, and what is not
// known of an actor counts against it. Every door (replies, commands, buttons, modals, shortcuts) asks [Policy.Authorize].
package authz

import "slices"

// Actor is who did something, as far as the surface knows.
type Actor struct {
	User       string // member id, U… or W…; a name is never used
	Team       string // the team the person belongs to; empty: not known
	Enterprise string // the person's Enterprise Grid organisation; may be empty
	Bot        bool   // a bot or an app spoke, also one that used a person's token
}

// Policy is who is let in now.
type Policy struct {
	Users      []string // member ids, of the last valid configuration; empty: nobody
	Team       string   // our own team
	Enterprise string   // our own organisation; empty: none
	// Suspended holds every decision: the configuration that has the list does not validate at the moment.
	Suspended bool
}

// Decision is what a policy says of an actor.
type Decision int

// The verdicts. Only Allowed lets anything happen. What is judged Waiting or Silent is kept, and judged again.
const (
	Denied            Decision = iota
	Allowed                    // on the list, of our team, a person
	Suspended                  // let in by the last valid list, while the policy is suspended: he may be told so
	SuspendedUnlisted          // not known to that list: nothing may show that he was heard
)

// Reason says why an actor is not let in, in a few words for the bot's log. It is never shown in Slack.
type Reason string

// The reasons of a denial.
const (
	ReasonNone       Reason = ""
	ReasonEmptyList  Reason = "nobody is on the list"
	ReasonNotListed  Reason = "not on the list"
	ReasonBot        Reason = "a bot or an app"
	ReasonOtherTeam  Reason = "of another team"
	ReasonNoTeam     Reason = "of no known team"
	ReasonNoIdentity Reason = "no member id"
	ReasonSuspended  Reason = "the configuration is not valid"
)

// Authorize decides. A guest is let in when he is listed; nobody else is ever let in for being in the channel. While the policy is
// suspended nobody is, and nobody is turned away for good but programs: the list that comes next may have him.
func (p Policy) Authorize(a Actor) (Decision, Reason) {
	verdict, reason := p.checkList(a)
	switch {
	case !p.Suspended, reason == ReasonBot, reason == ReasonNoIdentity:
		return verdict, reason
	case verdict == Allowed:
		return Suspended, ReasonSuspended
	case reason == ReasonNoTeam: // he is on the list, and has to be looked up
		return SuspendedUnlisted, reason
	}
	return SuspendedUnlisted, ReasonSuspended
}

func (p Policy) checkList(a Actor) (Decision, Reason) {
	switch {
	case a.Bot:
		return Denied, ReasonBot
	case a.User == "":
		return Denied, ReasonNoIdentity
	case len(p.Users) == 0:
		return Denied, ReasonEmptyList
	case !slices.Contains(p.Users, a.User):
		return Denied, ReasonNotListed
	case a.Team == "" && a.Enterprise == "":
		return Denied, ReasonNoTeam
	case a.Team != "" && a.Team == p.Team, p.Enterprise != "" && a.Enterprise == p.Enterprise:
		return Allowed, ReasonNone
	}
	return Denied, ReasonOtherTeam
}
