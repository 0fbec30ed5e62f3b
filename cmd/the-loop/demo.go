package main

import (
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"

	"github.com/spf13/cobra"

	"the-loop/cmd/internal/config"
	"the-loop/cmd/internal/demo"
)

func demoCommand(c *cli) *cobra.Command {
	var once bool
	var o demo.Options
	cmd := &cobra.Command{Use: "demo", Short: "Try the-loop without Slack: the bot, an agent and a local workspace in the browser", Args: cobra.NoArgs,
		Long: `Try the-loop without a Slack account: the bot, an agent in tmux and a local workspace run on this machine. A page in the browser shows
a channel to write in, the agent's terminal, and buttons that simulate faults. It needs only tmux. Nothing leaves this machine, unless
the agent uses the network, and everything is removed when you press Ctrl-C. With --once, a conversation is played and printed, without
a browser.`}
	cmd.Flags().BoolVar(&once, "once", false, "play one conversation, print it and exit")
	cmd.Flags().StringVar(&o.Harness, "harness", "small-agent", "the agent program: a built-in one such as claude, or one from your configuration")
	cmd.Flags().StringArrayVar(&o.EnvPass, "env", nil, "the name of a variable that the agent gets from this shell, such as ANTHROPIC_API_KEY; may be repeated")
	cmd.Flags().IntVar(&o.Port, "port", 0, "the page's port (default: any free port)")
	cmd.Flags().BoolVar(&o.NoOpen, "no-open", false, "do not open a browser")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range o.EnvPass {
			if c.env.getenv(name) == "" {
				return usageError(fmt.Errorf("--env %s: there is no such variable in this shell: export it first", name))
			}
		}
		o.Host = c.demoHost()
		if once {
			return demo.PlayScript(cmd.Context(), o.Host, cmd.OutOrStdout())
		}
		err := demo.Run(cmd.Context(), o, cmd.OutOrStdout())
		if errors.Is(err, demo.ErrUnknownHarness) {
			return usageError(err)
		}
		return err
	}
	return cmd
}

// demoHost returns what a demo takes from this program.
func (c *cli) demoHost() demo.Host {
	return demo.Host{Home: c.env.home, Getenv: c.env.getenv, Harnesses: builtinHarnessNames(), OpenApp: c.openDemoApp,
		OperatorConfig: func() (*config.Config, error) {
			cfg, _, err := c.loadConfig()
			return cfg, err
		}}
}

// openDemoApp makes the core of a demo.
func (c *cli) openDemoApp(r demo.AppRequest) (*demo.App, error) {
	inDemo := *c
	inDemo.configPath, inDemo.tmuxSocket, inDemo.fullSizePanes = r.Config.Path, r.TmuxSocket, !r.FixedSize
	a, err := inDemo.buildApp(func() *config.Config { return r.Config }, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	program, err := stableProgramPath(c.env.self, filepath.Join(r.Config.StateRoot, "run"))
	if err != nil {
		return nil, err
	}
	return &demo.App{Config: r.Config, Core: a.core, Tmux: a.tmux, Registry: a.registry, Events: a.events,
		Scrub:        newScrubber(func() declaredSources { return c.declaredSources(r.Config) }, a.tmux.Panes, r.Tokens).scrub,
		BotCommand:   []string{program, "serve", "--" + flagDetached, "--config", inDemo.configPath, "--" + flagSocket, r.TmuxSocket},
		BotErrorPath: botErrorPath(r.Config.StateRoot)}, nil
}
