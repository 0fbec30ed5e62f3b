package harnesstest

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// Agent is a real agent's program, ready for an unattended start in its home. The names are those of the configuration.
type Agent struct {
	Name   string
	Binary string
	Args   []string          // that it needs here, harnessArgs
	Env    map[string]string // that its pane needs, beside the HOME
}

// APIKey is what the agents have for a key. It is none.
const APIKey = "dummy-not-a-key-0123456789"

// Claude is Claude Code, past what only a person can do at its first start (theme, key); no folder is trusted yet.
func Claude(t testing.TB, home string, m *Model) Agent {
	t.Helper()
	a := Agent{Name: "claude", Binary: installedBinary(t, "@anthropic-ai", "claude-code-"+platform(), "claude")}
	writeFile(t, home, ".claude.json", `{"hasCompletedOnboarding":true,"lastOnboardingVersion":"2.1.197","theme":"dark","autoUpdates":false,`+
		`"customApiKeyResponses":{"approved":["`+APIKey[len(APIKey)-20:]+`"],"rejected":[]}}`)
	a.Env = map[string]string{"ANTHROPIC_BASE_URL": m.URL, "ANTHROPIC_API_KEY": APIKey, "DISABLE_TELEMETRY": "1",
		"DISABLE_ERROR_REPORTING": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
	return a
}

// Codex is Codex, which trusts the folder cwd.
func Codex(t testing.TB, home, cwd string, m *Model) Agent {
	t.Helper()
	a := Agent{Name: "codex", Binary: installedBinary(t, ".bin", "codex"), Env: map[string]string{"LOCAL_KEY": APIKey}}
	writeFile(t, home, ".codex/config.toml", `model_provider = "local"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.local]
name = "local"
base_url = "`+m.URL+`/v1"
env_key = "LOCAL_KEY"
wire_api = "responses"
[projects."`+cwd+`"]
trust_level = "trusted"
`)
	return a
}

// Gemini is Gemini CLI, which asks for no folder's trust.
func Gemini(t testing.TB, home string, m *Model) Agent {
	t.Helper()
	a := Agent{Name: "gemini", Binary: installedBinary(t, ".bin", "gemini")}
	writeFile(t, home, ".gemini/settings.json", `{"security":{"auth":{"selectedType":"gemini-api-key"},"folderTrust":{"enabled":false}},`+
		`"general":{"enableAutoUpdate":false,"disableAutoUpdate":true,"disableUpdateNag":true},"telemetry":{"enabled":false},`+
		`"privacy":{"usageStatisticsEnabled":false}}`)
	a.Env = map[string]string{"GEMINI_API_KEY": APIKey, "GOOGLE_GEMINI_BASE_URL": m.URL}
	return a
}

// OpenCode is OpenCode, which asks before it runs a command. With --pure: it would fetch a package at its first start.
func OpenCode(t testing.TB, home string, m *Model) Agent {
	t.Helper()
	if platform() != "linux-x64" {
		t.Skip("package.json has opencode for linux-x64 only")
	}
	a := Agent{Name: "opencode", Binary: installedBinary(t, "opencode-linux-x64", "bin", "opencode"), Args: []string{"--pure"}}
	writeFile(t, home, ".config/opencode/opencode.json", `{"autoupdate":false,"share":"disabled","model":"anthropic/claude-sonnet-4-5",`+
		`"provider":{"anthropic":{"options":{"baseURL":"`+m.URL+`/v1","apiKey":"`+APIKey+`"}}},"permission":{"bash":"ask"}}`)
	a.Env = map[string]string{"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS": "1", "OPENCODE_DISABLE_LSP_DOWNLOAD": "1"}
	return a
}

// Environ is the environment of a tmux server whose panes run agents in that home; they need node.
func Environ(t testing.TB, home string) []string {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatal(err)
	}
	return []string{"HOME=" + home, "LANG=C.UTF-8", "SHELL=/bin/sh", "PATH=" + filepath.Dir(node) + ":/usr/local/bin:/usr/bin:/bin"}
}

// installedBinary is the path of an agent's program below npm's folder. Without it the test fails with the line that installs it.
func installedBinary(t testing.TB, name ...string) string {
	t.Helper()
	if testing.Short() {
		t.Skip("the real agents are not run with -short")
	}
	file := filepath.Join(append([]string{repoRoot(t), "testdata", "agents", "node_modules"}, name...)...)
	if _, err := os.Stat(file); err != nil {
		t.Fatalf("%s is not installed; from the top folder: npm ci --prefix testdata/agents", filepath.Join(name...))
	}
	return file
}

// repoRoot is the folder that holds go.mod: tests run in the folder of their package.
func repoRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	t.Fatalf("there is no go.mod above this folder (%v)", err)
	return ""
}

// platform is how npm's packages call this system.
func platform() string {
	return runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
}

// writeFile writes a file below the home.
func writeFile(t testing.TB, home, name, content string) {
	t.Helper()
	path := filepath.Join(home, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}
