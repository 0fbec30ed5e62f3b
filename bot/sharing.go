package bot

import (
	"context"
	"fmt"

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
		if b.authorizeMember(ctx, user) == nil {
			users = append(users, user)
		}
	}
	return users
}

// retryChannel posts at once what waits for a channel.
func (b *Bot) retryChannel(channel string) {
	b.threads.ChannelOpened(channel)
	b.announcer.Retry()
}
