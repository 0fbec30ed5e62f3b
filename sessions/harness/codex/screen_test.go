package codex

import (
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func TestCodexScreensAreParsed(t *testing.T) {
	t.Parallel()
	const ready, working, dialog, menu = sessions.ViewReady, sessions.ViewWorking, sessions.ViewDialog, sessions.ViewMenu
	harnesstest.CheckScreens(t, Harness{}.ParseScreen, map[string]harnesstest.View{
		"starting":       {State: dialog},
		"welcome":        {State: ready},
		"ready":          {State: ready},
		"status":         {State: ready},
		"draft":          {State: ready, Box: "draft words"},
		"draft-lines":    {State: ready, Box: "para one\n\npara three"},
		"draft-pasted":   {State: ready, Box: "[Pasted Content 2291 chars]"},
		"slash-menu":     {State: ready, Box: "/"},
		"working":        {State: working},
		"working-queued": {State: working},
		"working-draft":  {State: working, Box: "dr w"},
		"permission":     {State: dialog, Line: "$ touch /srv/project/c/approved"},
		"bash-mode":      {State: menu},
		"file-menu":      {State: ready, Box: "@"},
		"shortcuts":      {State: menu},
		"menu-model":     {State: menu},
		"history-search": {State: menu},
	})
}
