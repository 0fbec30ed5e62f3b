package opencode

import (
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func TestOpenCodeScreensAreParsed(t *testing.T) {
	t.Parallel()
	const ready, working, dialog, menu = sessions.ViewReady, sessions.ViewWorking, sessions.ViewDialog, sessions.ViewMenu
	harnesstest.CheckScreens(t, Harness{}.ParseScreen, map[string]harnesstest.View{
		"starting":       {State: sessions.ViewStarting},
		"home":           {State: ready},
		"ready":          {State: ready},
		"draft":          {State: ready, Box: "draft words"},
		"draft-lines":    {State: ready, Box: "[Pasted ~3 lines]"},
		"draft-pasted":   {State: ready, Box: "[Pasted ~600 lines]"},
		"slash-menu":     {State: ready, Box: "/mod"},
		"working":        {State: working},
		"working-queued": {State: working},
		"working-draft":  {State: working, Box: "dr w"},
		"permission":     {State: dialog, Line: "Permission required"},
		"menu-commands":  {State: menu},
		"bash-mode":      {State: menu},
	})
}
