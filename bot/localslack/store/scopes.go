package store

// ScopeFor names the scope that reads a kind of conversation; what is history or read.
func ScopeFor(kind ChannelKind, what string) string {
	return KindName(kind) + ":" + what
}

// KindName is how scopes and event names call a kind of conversation.
func KindName(kind ChannelKind) string {
	switch kind {
	case PublicChannel:
		return "channels"
	case PrivateChannel:
		return "groups"
	}
	return string(kind)
}
