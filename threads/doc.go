// Package threads carries a reply from a Slack thread to the session that the thread is.
//
// Slack is the log: what a bound thread holds is the truth, a [Binding] says how far it is settled, and an event is only
// a quick way to hear of a reply. So nothing has to be on disk before an event is acknowledged, and nothing is lost with
// one: a thread is read again from its cursor after every connect.
//
// bindings.go keeps the bindings on disk; queue.go orders the replies of one thread; thread.go owns a thread and takes
// its replies through authorization, the intent on disk, the core and the receipt; catchup.go reads threads within
// Slack's rate; receipts.go shows what became of each reply as a reaction; outbox.go keeps what is still to be posted;
// answers.go has what the agent says posted and noted.go takes up what it reports; tickets.go writes replies onto tickets;
// questions.go puts offers and doubts to the operator, asks.go what the agent asks, and waiting.go says that it waits long;
// files.go brings the files of replies into the sessions' folders, where inbox.go owns theirs; enclose.go takes the files
// that agents report, and parcel.go has files posted with letters of the outbox; manager.go holds it all.
//
// The package knows no Slack library. What it needs of Slack are a few interfaces, which package bot implements:
// [History], [Receipts], [Sender], [Fetcher] and [FileUploader].
package threads
