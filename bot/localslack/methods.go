package localslack

// methodTable is the Web InjectAPI: what a method does, its tier, its scope, and whether Slack reads a JSON body for it.
func methodTable() map[string]method {
	return map[string]method{
		"api.test":              {fn: apiTest, token: noToken, json: true},
		"auth.test":             {fn: authTest, json: true},
		"apps.connections.open": {fn: connectionsOpen, token: appToken, scope: "connections:write", tier: tier3, json: true},

		"chat.postMessage":   {fn: postMessage, scope: "chat:write", json: true},
		"chat.postEphemeral": {fn: postEphemeral, scope: "chat:write", tier: tier4, json: true},
		"chat.update":        {fn: updateMessage, scope: "chat:write", tier: tier3, json: true},
		"chat.delete":        {fn: deleteMessage, scope: "chat:write", tier: tier3, json: true},
		"chat.getPermalink":  {fn: getPermalink},

		"conversations.info":    {fn: conversationsInfo, tier: tier3},
		"conversations.history": {fn: conversationsHistory, tier: tier3},
		"conversations.replies": {fn: conversationsReplies, tier: tier3, json: true},
		"conversations.members": {fn: conversationsMembers, tier: tier4},
		"conversations.list":    {fn: conversationsList, tier: tier2},
		"conversations.open":    {fn: conversationsOpen, scope: "im:write", tier: tier3, json: true},

		"users.conversations": {fn: usersConversations, tier: tier3},

		"users.info":      {fn: usersInfo, scope: "users:read", tier: tier4},
		"users.list":      {fn: usersList, scope: "users:read", tier: tier2},
		"usergroups.list": {fn: usergroupsList, scope: "usergroups:read", tier: tier2},

		"reactions.add":    {fn: reactionsAdd, scope: "reactions:write", tier: tier3, json: true},
		"reactions.remove": {fn: reactionsRemove, scope: "reactions:write", tier: tier2, json: true},
		"reactions.get":    {fn: reactionsGet, scope: "reactions:read", tier: tier3},

		"views.open":    {fn: viewsOpen, tier: tier4, json: true},
		"views.push":    {fn: viewsPush, tier: tier4, json: true},
		"views.update":  {fn: viewsUpdate, tier: tier4, json: true},
		"views.publish": {fn: viewsPublish, tier: tier4, json: true},

		"files.getUploadURLExternal":   {fn: filesGetUploadURL, scope: "files:write", tier: tier4},
		"files.completeUploadExternal": {fn: filesCompleteUpload, scope: "files:write", tier: tier4, json: true},
		"files.info":                   {fn: filesInfo, scope: "files:read", tier: tier4},

		"assistant.threads.setStatus": {fn: assistantStatus, scope: "chat:write", json: true},
	}
}
