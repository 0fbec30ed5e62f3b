package workspace

import (
	"strings"
	"time"
)

// ticketLife is how long the URL of apps.connections.open may wait to be dialled.
const ticketLife = 30 * time.Second

func apiTest(c *call) (reply, error) {
	if e := c.arg("error"); e != "" {
		return nil, fail(e)
	}
	args := reply{}
	for k, v := range c.args {
		args[k] = v
	}
	return reply{"args": args}, nil
}

func authTest(c *call) (reply, error) {
	w := c.w
	out := reply{"url": "https://" + w.opts.TeamDomain + ".slack.com/", "team": w.opts.TeamDomain,
		"team_id": w.opts.TeamID, "is_enterprise_install": false}
	if c.kind == appToken {
		out["app_id"], out["app_name"] = w.appID, w.opts.BotName
		return out, nil
	}
	out["user"], out["user_id"], out["bot_id"] = w.opts.BotName, w.botUser, w.botID
	return out, nil
}

func connectionsOpen(c *call) (reply, error) {
	w := c.w
	ticket := newUUID()
	w.tickets[ticket] = w.clock.Now().Add(ticketLife)
	url := strings.Replace(w.base, "http://", "ws://", 1) + "/link/?ticket=" + ticket + "&app_id=" + w.appID
	return reply{"url": url}, nil
}
