package localslack_test

import (
	"context"
	"fmt"
	"time"

	"github.com/slack-go/slack"

	"the-loop/bot/localslack"
	"the-loop/bot/localslack/store"
)

func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	ws := localslack.New(store.Options{})
	ann := ws.AddUser("ann")
	general := ws.AddChannel("general", store.Members(ann.ID, ws.BotUserID()))
	if err := ws.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer ws.Close()

	root, err := ann.Post(general.ID, "is <everything> fine?")
	if err != nil {
		fmt.Println(err)
		return
	}
	bot := slack.New(ws.BotToken(), slack.OptionAPIURL(ws.APIURL()))
	go bot.PostMessageContext(ctx, general.ID, slack.MsgOptionText("it is", false), slack.MsgOptionTS(root))

	if _, err := ws.WaitForReply(ctx, general.ID, root, func(m store.Message) bool { return m.BotID == ws.BotID() }); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range ws.Thread(general.ID, root) {
		fmt.Println(m.Text)
	}
	// Output:
	// is &lt;everything&gt; fine?
	// it is
}
