package webapi

import (
	"strings"
	"time"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
	"the-loop/bot/localslack/store"
)

// TicketTTL is how long the URL of apps.connections.open may wait to be dialled.
const TicketTTL = 30 * time.Second

func apiTest(c *call) (store.Object, error) {
	if e := c.arg("error"); e != "" {
		return nil, slackerr.New(e)
	}
	args := store.Object{}
	for k, v := range c.args {
		args[k] = v
	}
	return store.Object{"args": args}, nil
}

func authTest(c *call) (store.Object, error) {
	w := c.w
	out := store.Object{"url": "https://" + w.Opts.TeamDomain + ".slack.com/", "team": w.Opts.TeamDomain,
		"team_id": w.Opts.TeamID, "is_enterprise_install": false}
	if c.kind == appToken {
		out["app_id"], out["app_name"] = w.AppID(), w.Opts.BotName
		return out, nil
	}
	out["user"], out["user_id"], out["bot_id"] = w.Opts.BotName, w.BotUser, w.BotID()
	return out, nil
}

func connectionsOpen(c *call) (store.Object, error) {
	w := c.w
	ticket := slackid.UUID()
	w.Tickets[ticket] = w.Clock.Now().Add(TicketTTL)
	url := strings.Replace(w.BaseURL, "http://", "ws://", 1) + "/link/?ticket=" + ticket + "&app_id=" + w.AppID()
	return store.Object{"url": url}, nil
}
