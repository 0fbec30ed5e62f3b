package bot

import (
	"context"
	"fmt"

	"the-loop/authz"
	"the-loop/bot/slack"
)

// newSharingGuard returns the guard of the channels that another organisation can read.
func (b *Bot) newSharingGuard() *slack.SharingGuard {
	return slack.NewSharingGuard(slack.SharingGuardOptions{Client: b.o.Client, AllowShared: func() bool { return b.o.Config().AllowShared },
		Members: b.allowedUsers, OnRelease: b.retryChannel, Log: b.o.Log})
}

// sharingProblems says which channels are held back, and how much waits.
func (b *Bot) sharingProblems() (all []string) {
	for _, channel := range b.sharing.HeldChannels() {
		all = append(all, fmt.Sprintf("%v (%d messages wait)", &slack.SharedChannelError{Channel: channel}, b.threads.PendingPosts(channel)))
	}
	return all
}

// allowedUsers are the members of the configuration who are authorized now.
func (b *Bot) allowedUsers(ctx context.Context) (users []string) {
	for _, user := range b.o.Config().Users {
		if b.isAllowed(ctx, user) {
			users = append(users, user)
		}
	}
	return users
}

// isAllowed reports whether a member is authorized now.
func (b *Bot) isAllowed(ctx context.Context, user string) bool {
	actor, _, err := b.o.Client.People().ResolveActor(ctx, authz.Actor{User: user})
	verdict, _ := b.Policy().Authorize(actor)
	return err == nil && verdict == authz.Allowed
}

// retryChannel posts at once what waits for a channel.
func (b *Bot) retryChannel(channel string) {
	b.threads.ChannelOpened(channel)
	b.announcer.retry()
}
