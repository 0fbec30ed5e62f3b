package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"the-loop/cmd/internal/config"
)

// flagTokens is how "the-loop start" hands the bot its tokens: on a pipe. So they are never in the environment that the bot was
// started with, which the system shows for as long as it runs.
const flagTokens = "tokens-on-stdin"

// maxTokenBytes bounds what is read from that pipe, in bytes. It is less than a pipe takes before somebody reads.
const maxTokenBytes = 32 << 10

// readTokens are our own secrets, as the environment has them, by the names of their variables.
func (c *cli) readTokens(cfg *config.Config) map[string]string {
	own := map[string]string{}
	for _, name := range cfg.SecretNames() {
		if value := c.env.getenv(name); value != "" {
			own[name] = strings.Clone(value)
		}
	}
	return own
}

// takeTokens reads our own secrets and takes them out of the environment, so that nothing that is started from here on gets
// them. The process is undumpable by then.
func (c *cli) takeTokens(cfg *config.Config) (map[string]string, error) {
	own := c.readTokens(cfg)
	for _, name := range cfg.SecretNames() {
		if err := c.env.unsetenv(name); err != nil {
			return nil, fmt.Errorf("unset $%s: %w", name, err)
		}
	}
	if !c.tokensOnStdin {
		return own, nil
	}
	given := map[string]string{}
	if err := json.NewDecoder(io.LimitReader(c.env.in, maxTokenBytes)).Decode(&given); err != nil {
		return nil, fmt.Errorf("read the tokens from standard input: not a JSON object") // the error may hold a part of one
	}
	maps.Copy(own, given)
	return own, nil
}

// newTokenPipe is a pipe that holds our own secrets. Whoever has its other end closes it.
func newTokenPipe(own map[string]string) (*os.File, error) {
	data, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	if len(data) > maxTokenBytes {
		return nil, fmt.Errorf("the tokens are longer than %d bytes", maxTokenBytes)
	}
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	_, err = in.Write(data)
	if closing := in.Close(); err == nil {
		err = closing
	}
	if err != nil {
		_ = out.Close()
		return nil, err
	}
	return out, nil
}

// withoutVariables is an environment without those variables.
func withoutVariables(environ, names []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(names, name)
	})
}
