package localslack

import (
	"strings"
	"time"

	"the-loop/bot/localslack/slackerr"
	"the-loop/bot/localslack/slackid"
)

// ticketTTL is how long the URL of apps.connections.open may wait to be dialled.
const ticketTTL = 30 * time.Second

func apiTest(c *call) (jsonObject, error) {
	if e := c.arg("error"); e != "" {
		return nil, slackerr.New(e)
	}
	args := jsonObject{}
	for k, v := range c.args {
		args[k] = v
	}
	return jsonObject{"args": args}, nil
}

func authTest(c *call) (jsonObject, error) {
	w := c.w
	out := jsonObject{"url": "https://" + w.opts.TeamDomain + ".slack.com/", "team": w.opts.TeamDomain,
		"team_id": w.opts.TeamID, "is_enterprise_install": false}
	if c.kind == appToken {
		out["app_id"], out["app_name"] = w.appID, w.opts.BotName
		return out, nil
	}
	out["user"], out["user_id"], out["bot_id"] = w.opts.BotName, w.botUser, w.botID
	return out, nil
}

func connectionsOpen(c *call) (jsonObject, error) {
	w := c.w
	ticket := slackid.UUID()
	w.tickets[ticket] = w.clock.Now().Add(ticketTTL)
	url := strings.Replace(w.baseURL, "http://", "ws://", 1) + "/link/?ticket=" + ticket + "&app_id=" + w.appID
	return jsonObject{"url": url}, nil
}
