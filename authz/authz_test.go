package authz

import "testing"

func TestAuthorize(t *testing.T) {
	t.Parallel()
	open := Policy{Users: []string{"U1", "W2"}, Team: "T1"}
	grid := Policy{Users: []string{"U1"}, Team: "T1", Enterprise: "E1"}
	for _, c := range []struct {
		name   string
		policy Policy
		actor  Actor
		want   Decision
		reason Reason
	}{
		{"a listed member of our team", open, Actor{User: "U1", Team: "T1"}, Allowed, ReasonNone},
		{"a listed member with a W id", open, Actor{User: "W2", Team: "T1"}, Allowed, ReasonNone},
		{"nobody by an empty list", Policy{Team: "T1"}, Actor{User: "U1", Team: "T1"}, Denied, ReasonEmptyList},
		{"a colleague who is not listed", open, Actor{User: "U3", Team: "T1"}, Denied, ReasonNotListed},
		{"a prefix of a listed id", open, Actor{User: "U", Team: "T1"}, Denied, ReasonNotListed},
		{"other case", open, Actor{User: "u1", Team: "T1"}, Denied, ReasonNotListed},
		{"a listed id of another team", open, Actor{User: "U1", Team: "T9"}, Denied, ReasonOtherTeam},
		{"a listed id of no known team", open, Actor{User: "U1"}, Denied, ReasonNoTeam},
		{"no team on either side", Policy{Users: []string{"U1"}}, Actor{User: "U1"}, Denied, ReasonNoTeam},
		{"an app with a listed person's token", open, Actor{User: "U1", Team: "T1", Bot: true}, Denied, ReasonBot},
		{"no identity", open, Actor{Team: "T1"}, Denied, ReasonNoIdentity},
		{"no identity, though the list has an empty entry", Policy{Users: []string{""}, Team: "T1"}, Actor{Team: "T1"}, Denied, ReasonNoIdentity},
		{"another team of our organisation", grid, Actor{User: "U1", Team: "T2", Enterprise: "E1"}, Allowed, ReasonNone},
		{"another organisation", grid, Actor{User: "U1", Team: "T2", Enterprise: "E2"}, Denied, ReasonOtherTeam},
		{"no organisation on either side", open, Actor{User: "U1", Team: "T2"}, Denied, ReasonOtherTeam},
		{"a suspended policy", Policy{Users: []string{"U1"}, Team: "T1", Suspended: true}, Actor{User: "U1", Team: "T1"}, Suspended, ReasonSuspended},
		{"a stranger to the last valid list", Policy{Users: []string{"U1"}, Team: "T1", Suspended: true}, Actor{User: "U2", Team: "T1"}, SuspendedUnlisted, ReasonSuspended},
		{"another team while suspended", Policy{Users: []string{"U1"}, Team: "T1", Suspended: true}, Actor{User: "U1", Team: "T2"}, SuspendedUnlisted, ReasonSuspended},
		{"no known team while suspended", Policy{Users: []string{"U1"}, Team: "T1", Suspended: true}, Actor{User: "U1"}, SuspendedUnlisted, ReasonNoTeam},
		{"no valid list was ever read", Policy{Team: "T1", Suspended: true}, Actor{User: "U1", Team: "T1"}, SuspendedUnlisted, ReasonSuspended},
		{"before our own team is known", Policy{Users: []string{"U1"}, Suspended: true}, Actor{User: "U1", Team: "T1"}, SuspendedUnlisted, ReasonSuspended},
		{"a bot while suspended", Policy{Users: []string{"U1"}, Team: "T1", Suspended: true}, Actor{User: "U1", Team: "T1", Bot: true}, Denied, ReasonBot},
		{"the zero policy", Policy{}, Actor{}, Denied, ReasonNoIdentity},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if got, reason := c.policy.Authorize(c.actor); got != c.want || reason != c.reason {
				t.Errorf("Judge(%+v) = %v, %q; want %v, %q", c.actor, got, reason, c.want, c.reason)
			}
		})
	}
}
