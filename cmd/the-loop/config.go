package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"the-loop/cmd/internal/config"
	"the-loop/sessions/harness"
)

func configCommand(c *cli) *cobra.Command {
	return newGroupCommand("config", "Create, check and trust the configuration", configInitCommand(c), configValidateCommand(c), configSchemaCommand(c), configTrustCommand(c), configClaudeKeyCommand(c))
}

func configInitCommand(c *cli) *cobra.Command {
	var here bool
	cmd := &cobra.Command{Use: "init", Short: "Create a configuration and its schema", Args: cobra.NoArgs,
		Long: `Create ~/.the-loop/cli-config.yaml, or with --here ./.the-loop/cli-config.yaml, and its schema in the same folder, which editors use
for completion. An existing configuration is not changed.`}
	cmd.Flags().BoolVar(&here, "here", false, "create it in the current folder")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		path := config.HomePath(c.env.home)
		switch {
		case c.configPath != "":
			path = c.env.abs(c.configPath)
		case here:
			path = config.FolderPath(c.env.workdir)
		}
		if err := config.Init(path, config.InitOptions{Home: c.env.home}); err != nil {
			return err
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "wrote %s and its schema\n", path)
		return err
	}
	return cmd
}

func configValidateCommand(c *cli) *cobra.Command {
	return &cobra.Command{Use: "validate", Short: "Check the configuration and print its path", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, _, err := c.loadConfig()
			if err != nil {
				return err
			}
			for _, w := range cfg.Warnings() {
				_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "warning: %s\n", w)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s is valid\n", cfg.Path)
			return err
		}}
}

func configSchemaCommand(c *cli) *cobra.Command {
	return allowAgents(&cobra.Command{Use: "schema", Short: "Print the configuration's JSON Schema", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		}})
}

func configTrustCommand(c *cli) *cobra.Command {
	return &cobra.Command{Use: "trust [FILE]", Short: "Trust a configuration in the current folder", Args: cobra.MaximumNArgs(1),
		Long: `Trust the configuration FILE (default ./.the-loop/cli-config.yaml), so that it is used when the-loop is run in its folder. Read it
first: it names programs that run with your permissions.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := config.FolderPath(c.env.workdir)
			if len(args) == 1 {
				path = c.env.abs(args[0])
			}
			if err := config.Trust(c.env.home, path); err != nil {
				return err
			}
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s is trusted\n", path)
			return err
		}}
}

func configClaudeKeyCommand(c *cli) *cobra.Command {
	return &cobra.Command{Use: "claude-key", Short: "Add a submit key to Claude Code that cannot answer a dialog", Args: cobra.NoArgs,
		Long: `Add a key binding for Claude Code's input box (C-x C-y) to ~/.claude/keybindings.json. Sessions started after that use it to submit
text. It does nothing in a dialog, so a reply cannot answer a dialog that opens at the same moment. Other key bindings in the file are
kept; a file that cannot be parsed is not changed.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			added, err := harness.AddSubmitKey(c.env.home)
			if err != nil {
				return err
			}
			said := "the key binding exists already"
			if added {
				said = "the key binding was added: restart running sessions to use it"
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), said)
			return err
		}}
}
