package claude

import (
	"testing"

	"the-loop/sessions"
	"the-loop/sessions/harness/harnesstest"
)

func TestClaudeScreensAreParsed(t *testing.T) {
	t.Parallel()
	const ready, working, dialog, menu = sessions.ViewReady, sessions.ViewWorking, sessions.ViewDialog, sessions.ViewMenu
	harnesstest.CheckScreens(t, Harness{}.ParseScreen, map[string]harnesstest.View{
		"starting":         {State: sessions.ViewStarting},
		"ready":            {State: ready},
		"ready-later":      {State: ready},
		"interrupted":      {State: ready},
		"stashed":          {State: ready},
		"shortcuts":        {State: ready},
		"draft":            {State: ready, Box: "a draft of mine"},
		"draft-lines":      {State: ready, Box: "1\n2\n3"},
		"draft-written":    {State: ready, Box: "line one\nline two\nline three"},
		"draft-pasted":     {State: ready, Box: "[Pasted text #1 +399 lines]", Folded: 399},
		"slash-menu":       {State: ready, Box: "/"},
		"file-menu":        {State: ready, Box: "@"},
		"working":          {State: working},
		"working-queued":   {State: working},
		"working-draft":    {State: working, Box: "draft while working"},
		"permission-bash":  {State: dialog, Line: "touch /srv/project/approved"},
		"permission-long":  {State: dialog, Line: "1. Yes"},
		"permission-fetch": {State: dialog, Line: "Claude wants to fetch"},
		"question":         {State: dialog, Line: "2. B"},
		"trust":            {State: dialog, Line: "Yes, I trust this folder"},
		"api-key":          {State: dialog, Line: "Do you want to use this API key?"},
		"bypass":           {State: dialog, Line: "Yes, I accept"},
		"onboarding":       {State: dialog},
		"bash-mode":        {State: menu},
		"history-search":   {State: menu},
		"transcript":       {State: menu},
		"rewind":           {State: menu},
		"agents-view":      {State: menu},
		"menu-model":       {State: menu},
		"menu-resume":      {State: menu},
		"menu-config":      {State: menu},
		"menu-help":        {State: dialog},
		"menu-permissions": {State: menu},
		"menu-theme":       {State: dialog},
		"menu-memory":      {State: dialog},
		"menu-hooks":       {State: dialog},
		"menu-status":      {State: dialog},
		"menu-export":      {State: dialog},
		"menu-agents":      {State: menu},
		"menu-tasks":       {State: menu},
	})
}
