package localslack

import (
	"slices"

	"the-loop/bot/localslack/slackerr"
)

type userGroup struct {
	ID, Handle, Name string
	Users            []string
}

func (w *API) userInfo(p *Member) jsonObject {
	return jsonObject{"id": p.ID, "team_id": p.TeamID, "name": p.Name, "real_name": p.RealName, "deleted": p.deleted,
		"is_bot": p.bot, "is_app_user": false, "is_admin": false, "is_owner": false, "is_primary_owner": false,
		"is_restricted": p.restricted, "is_ultra_restricted": p.ultraRestricted, "is_stranger": p.IsStranger(), "tz": "Etc/UTC",
		"profile": jsonObject{"real_name": p.RealName, "display_name": p.DisplayName, "team": p.TeamID}}
}

// known says whether the bot may see a member: strangers only through a channel that both are in.
func (w *API) isVisibleToBot(p *Member) bool {
	if !p.IsStranger() {
		return true
	}
	for _, ch := range w.channels {
		if ch.hasMember(p.ID) && ch.hasMember(w.botUser) {
			return true
		}
	}
	return false
}

func usersInfo(c *call) (jsonObject, error) {
	p := c.w.people[c.arg("user")]
	switch {
	case p == nil:
		return nil, slackerr.New("user_not_found")
	case !c.w.isVisibleToBot(p):
		return nil, slackerr.New("user_not_visible")
	}
	return jsonObject{"user": c.w.userInfo(p)}, nil
}

func usersList(c *call) (jsonObject, error) {
	var list []jsonObject
	for _, id := range c.w.peopleOrder {
		if p := c.w.people[id]; c.w.isVisibleToBot(p) {
			list = append(list, c.w.userInfo(p))
		}
	}
	part, next, err := paginate(c, list, 1000, 1000)
	if err != nil {
		return nil, err
	}
	return withNextCursor(jsonObject{"members": append([]jsonObject{}, part...), "cache_ts": c.w.clock.Now().Unix()}, next), nil
}

func usergroupsList(c *call) (jsonObject, error) {
	list := []jsonObject{}
	for _, g := range c.w.groups {
		item := jsonObject{"id": g.ID, "team_id": c.w.opts.TeamID, "is_usergroup": true, "name": g.Name, "handle": g.Handle,
			"is_external": false, "user_count": len(g.Users)}
		if c.flag("include_users") {
			item["users"] = slices.Clone(g.Users)
		}
		list = append(list, item)
	}
	return jsonObject{"usergroups": list}, nil
}
