package bot

// The methods of the Web InjectAPI that the bot calls with its bot token.
const (
	methodAuthTest  = "auth.test"
	methodPost      = "chat.postMessage"
	methodUpdate    = "chat.update"
	methodDelete    = "chat.delete"
	methodEphemeral = "chat.postEphemeral"
	methodReplies   = "conversations.replies"
	methodHistory   = "conversations.history"
	methodChannel   = "conversations.info"
	methodJoined    = "users.conversations"
	methodUser      = "users.info"
	methodReact     = "reactions.add"
	methodUnreact   = "reactions.remove"
	methodStatus    = "assistant.threads.setStatus"

	methodViewOpen   = "views.open"
	methodViewPush   = "views.push"
	methodViewUpdate = "views.update"
	methodHome       = "views.publish"
	methodUploadURL  = "files.getUploadURLExternal"
	methodUpload     = "files.completeUploadExternal"
	methodFile       = "files.info"
	// methodOpen is called with the app token, which needs connections:write.
	methodOpen = "apps.connections.open"
)

// The scopes for files: what the bot posts, and what comes with replies.
const (
	scopeUpload = "files:write"
	scopeFetch  = "files:read"
)
