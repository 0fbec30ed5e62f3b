package slack

// The methods of the Web API that the client calls with the bot token.
const (
	MethodAuthTest  = "auth.test"
	MethodPost      = "chat.postMessage"
	MethodUpdate    = "chat.update"
	MethodDelete    = "chat.delete"
	MethodEphemeral = "chat.postEphemeral"
	MethodReplies   = "conversations.replies"
	MethodHistory   = "conversations.history"
	MethodChannel   = "conversations.info"
	MethodJoined    = "users.conversations"
	MethodUser      = "users.info"
	MethodReact     = "reactions.add"
	MethodUnreact   = "reactions.remove"
	MethodStatus    = "assistant.threads.setStatus"

	MethodViewOpen   = "views.open"
	MethodViewPush   = "views.push"
	MethodViewUpdate = "views.update"
	MethodHome       = "views.publish"
	MethodUploadURL  = "files.getUploadURLExternal"
	MethodUpload     = "files.completeUploadExternal"
	MethodFile       = "files.info"
	// MethodOpen is called with the app token, which needs connections:write.
	MethodOpen = "apps.connections.open"
)

// The scopes for files: what the bot posts, and what comes with replies.
const (
	ScopeUpload = "files:write"
	ScopeFetch  = "files:read"
)
