package store

// ChannelOption makes a channel other than public.
type ChannelOption func(*ChannelState)

// Private makes a private channel: it does not exist for a bot that is not in it.
func Private() ChannelOption { return func(c *ChannelState) { c.Kind = PrivateChannel } }

// Mpim makes a direct message of several people.
func Mpim() ChannelOption { return func(c *ChannelState) { c.Kind = GroupMessage } }

// ExtShared shares the channel with other teams (Slack Connect).
func ExtShared(teams ...string) ChannelOption {
	return func(c *ChannelState) { c.ExtShared, c.SharedTeams = true, append(c.SharedTeams, teams...) }
}

// Archived makes a channel that nobody can post in.
func Archived() ChannelOption { return func(c *ChannelState) { c.Archived = true } }

// Members puts members in from the beginning, by id.
func Members(users ...string) ChannelOption {
	return func(c *ChannelState) { c.Members = append(c.Members, users...) }
}

// AddChannel adds a channel, a public one unless an option says otherwise. Nobody is in it.
func (w *Places) AddChannel(name string, opts ...ChannelOption) Channel {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	c := &ChannelState{Name: name, Kind: PublicChannel}
	for _, o := range opts {
		o(c)
	}
	prefix := "C"
	if c.Kind == GroupMessage {
		prefix = "G"
	}
	c.SharedTeams = append(c.SharedTeams, w.Opts.TeamID)
	return w.newChannel(prefix, c).public()
}

// OpenIM returns the direct message between somebody and the bot.
func (w *Places) OpenIM(user string) Channel {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	if p := w.FindMember(user); p != nil {
		user = p.ID
	}
	return w.Im(user).public()
}
