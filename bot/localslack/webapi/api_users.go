package webapi

import (
	"slices"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/store"
)

func (w *API) userInfo(p *store.Member) store.Object {
	return store.Object{"id": p.ID, "team_id": p.TeamID, "name": p.Name, "real_name": p.RealName, "deleted": p.Deleted,
		"is_bot": p.Bot, "is_app_user": false, "is_admin": false, "is_owner": false, "is_primary_owner": false,
		"is_restricted": p.Restricted, "is_ultra_restricted": p.UltraRestricted, "is_stranger": p.IsStranger(), "tz": "Etc/UTC",
		"profile": store.Object{"real_name": p.RealName, "display_name": p.DisplayName, "team": p.TeamID}}
}

// isVisibleToBot says whether the bot may see a member: strangers only through a channel that both are in.
func (w *API) isVisibleToBot(p *store.Member) bool {
	if !p.IsStranger() {
		return true
	}
	for _, ch := range w.ChannelsByID {
		if ch.HasMember(p.ID) && ch.HasMember(w.BotUser) {
			return true
		}
	}
	return false
}

func usersInfo(c *call) (store.Object, error) {
	p := c.w.MembersByID[c.arg("user")]
	switch {
	case p == nil:
		return nil, slackerr.New("user_not_found")
	case !c.w.isVisibleToBot(p):
		return nil, slackerr.New("user_not_visible")
	}
	return store.Object{"user": c.w.userInfo(p)}, nil
}

func usersList(c *call) (store.Object, error) {
	var list []store.Object
	for _, id := range c.w.PeopleOrder {
		if p := c.w.MembersByID[id]; c.w.isVisibleToBot(p) {
			list = append(list, c.w.userInfo(p))
		}
	}
	part, next, err := paginate(c, list, 1000, 1000)
	if err != nil {
		return nil, err
	}
	return withNextCursor(store.Object{"members": append([]store.Object{}, part...), "cache_ts": c.w.Clock.Now().Unix()}, next), nil
}

func usergroupsList(c *call) (store.Object, error) {
	list := []store.Object{}
	for _, g := range c.w.Groups {
		item := store.Object{"id": g.ID, "team_id": c.w.Opts.TeamID, "is_usergroup": true, "name": g.Name, "handle": g.Handle,
			"is_external": false, "user_count": len(g.Users)}
		if c.flag("include_users") {
			item["users"] = slices.Clone(g.Users)
		}
		list = append(list, item)
	}
	return store.Object{"usergroups": list}, nil
}
