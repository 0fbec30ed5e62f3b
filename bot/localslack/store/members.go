package store

type userGroup struct {
	ID, Handle, Name string
	Users            []string
}

// Member is what the workspace knows of a person. It does not change once the person was added.
type Member struct {
	ID          string
	Name        string // what others type after the @
	RealName    string
	DisplayName string
	TeamID      string // another one than the workspace's for people of a shared channel
	HomeTeam    string // the workspace's

	Deleted, Restricted, UltraRestricted, Bot bool
	BotID, AppID                              string // of another app's bot
}

// IsStranger says whether somebody belongs to another team.
func (p *Member) IsStranger() bool { return p.TeamID != p.HomeTeam }

// IsGuest says whether somebody is a guest of either kind.
func (p *Member) IsGuest() bool { return p.Restricted }

// IsDeleted says whether the account is deactivated.
func (p *Member) IsDeleted() bool { return p.Deleted }

// IsBot says whether this is an app's bot user.
func (p *Member) IsBot() bool { return p.Bot }

// UserOption makes somebody other than a full member.
type UserOption func(*Member)

// Guest is a multi-channel guest: is_restricted.
func Guest() UserOption { return func(p *Member) { p.Restricted = true } }

// SingleChannelGuest is is_ultra_restricted too.
func SingleChannelGuest() UserOption {
	return func(p *Member) { p.Restricted, p.UltraRestricted = true, true }
}

// Stranger is somebody of another team, met in a channel that is shared with it.
func Stranger(team string) UserOption { return func(p *Member) { p.TeamID = team } }

// Deleted is a deactivated account. It can still be looked up.
func Deleted() UserOption { return func(p *Member) { p.Deleted = true } }

// Bot is the bot user of another app.
func Bot() UserOption { return func(p *Member) { p.Bot = true } }

// Named sets real name and display name, which several people may share.
func Named(realName, displayName string) UserOption {
	return func(p *Member) { p.RealName, p.DisplayName = realName, displayName }
}

// AddGroup adds a user group that people mention as @handle.
func (w *Places) AddGroup(handle string, users ...string) (id string) {
	w.Mu.Lock()
	defer w.Mu.Unlock()
	g := userGroup{ID: w.NewID("S"), Handle: handle, Name: handle, Users: users}
	w.Groups = append(w.Groups, g)
	return g.ID
}
