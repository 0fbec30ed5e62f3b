package webapi

// methodTable is the Web API: what a method does, its tier, its scope, and whether Slack reads a JSON body for it.
func methodTable() map[string]method {
	return map[string]method{
		"api.test":              {fn: apiTest, token: noToken, json: true},
		"auth.test":             {fn: authTest, json: true},
		"apps.connections.open": {fn: connectionsOpen, token: appToken, scope: "connections:write", Tier: tier3, json: true},

		"chat.postMessage":   {fn: postMessage, scope: "chat:write", json: true},
		"chat.postEphemeral": {fn: postEphemeral, scope: "chat:write", Tier: tier4, json: true},
		"chat.update":        {fn: updateMessage, scope: "chat:write", Tier: tier3, json: true},
		"chat.delete":        {fn: deleteMessage, scope: "chat:write", Tier: tier3, json: true},
		"chat.getPermalink":  {fn: getPermalink},

		"conversations.info":    {fn: conversationsInfo, Tier: tier3},
		"conversations.history": {fn: conversationsHistory, Tier: tier3},
		"conversations.replies": {fn: conversationsReplies, Tier: tier3, json: true},
		"conversations.members": {fn: conversationsMembers, Tier: tier4},
		"conversations.list":    {fn: conversationsList, Tier: tier2},
		"conversations.open":    {fn: conversationsOpen, scope: "im:write", Tier: tier3, json: true},

		"users.conversations": {fn: usersConversations, Tier: tier3},

		"users.info":      {fn: usersInfo, scope: "users:read", Tier: tier4},
		"users.list":      {fn: usersList, scope: "users:read", Tier: tier2},
		"usergroups.list": {fn: usergroupsList, scope: "usergroups:read", Tier: tier2},

		"reactions.add":    {fn: reactionsAdd, scope: "reactions:write", Tier: tier3, json: true},
		"reactions.remove": {fn: reactionsRemove, scope: "reactions:write", Tier: tier2, json: true},
		"reactions.get":    {fn: reactionsGet, scope: "reactions:read", Tier: tier3},

		"views.open":    {fn: viewsOpen, Tier: tier4, json: true},
		"views.push":    {fn: viewsPush, Tier: tier4, json: true},
		"views.update":  {fn: viewsUpdate, Tier: tier4, json: true},
		"views.publish": {fn: viewsPublish, Tier: tier4, json: true},

		"files.getUploadURLExternal":   {fn: filesGetUploadURL, scope: "files:write", Tier: tier4},
		"files.completeUploadExternal": {fn: filesCompleteUpload, scope: "files:write", Tier: tier4, json: true},
		"files.info":                   {fn: filesInfo, scope: "files:read", Tier: tier4},

		"assistant.threads.setStatus": {fn: assistantStatus, scope: "chat:write", json: true},
	}
}
