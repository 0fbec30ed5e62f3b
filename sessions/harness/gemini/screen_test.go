package gemini

import (
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func TestGeminiScreensAreParsed(t *testing.T) {
	t.Parallel()
	const ready, working, dialog, menu = sessions.ViewReady, sessions.ViewWorking, sessions.ViewDialog, sessions.ViewMenu
	harnesstest.CheckScreens(t, Harness{}.ParseScreen, map[string]harnesstest.View{
		"starting":       {State: sessions.ViewStarting},
		"ready":          {State: ready},
		"draft":          {State: ready, Box: "draft words"},
		"draft-lines":    {State: ready, Box: "l1\n\nl3"},
		"draft-pasted":   {State: ready, Box: "[Pasted Text: 600 lines]"},
		"at-popup":       {State: ready, Box: "see @approved"},
		"slash-menu":     {State: ready, Box: "/mod"},
		"working":        {State: working},
		"working-queued": {State: working},
		"permission":     {State: dialog, Line: "Allow once"},
		"trust":          {State: dialog, Line: "Trust folder"},
		"bash-mode":      {State: menu},
	})
}
