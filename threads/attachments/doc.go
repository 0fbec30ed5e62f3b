// Package attachments moves files between chat and the folder that a session works in: the files of replies are downloaded
// into an inbox there, and files that an agent wants to post are opened only if they may leave the folder.
//
// What lies in the folder is the agent's to change, so no path in it is trusted and no link is followed.
package attachments
