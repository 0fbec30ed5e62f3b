package harnesstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Model stands in for the models' APIs on loopback: Anthropic Messages, OpenAI Responses and Gemini, streaming. It
// answers every turn with a short text. What the newest text of the user holds steers it: [[wait MS]] answers slowly,
// [[run COMMAND]] asks for the shell tool once, [[call TOOL JSON]] for any tools with their inputs (Anthropic only),
// [[fail STATUS]] is an error, [[say TEXT]] is answered with that text and [[lines N]] with as many numbered lines.
type Model struct {
	URL string

	mu       sync.Mutex // guards the fields that follow
	texts    []string   // the user's in the newest request that offers tools
	requests int
	planFile string
}

// NewModel is a model that is there until the test ends.
func NewModel(t testing.TB) *Model {
	t.Helper()
	m := &Model{}
	server := httptest.NewServer(m)
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	m.URL = server.URL
	return m
}

// UserTexts are the texts of the user in the newest conversation, in order.
func (m *Model) UserTexts() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.texts...)
}

// CountTexts is how many texts of the user's the newest conversation has that hold a word; all of them when it is empty.
func (m *Model) CountTexts(word string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := 0
	for _, text := range m.texts {
		if strings.Contains(text, word) {
			n++
		}
	}
	return n
}

// PlanFile is the file that Claude Code tells the model to write its plan to, since 2.1.3xx; empty: it told of none.
func (m *Model) PlanFile() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.planFile
}

var planFilePattern = regexp.MustCompile(`/[^" ]+/\.claude/plans/[a-z0-9-]+\.md`)

// modelRequest is a request as all three APIs have it.
type modelRequest struct {
	number       int
	model        string
	texts        []string // the user's, oldest first
	newestText   string   // what the user said after the last answer
	isToolResult bool     // the last message is a tool's result
	tools        []string
}

func (t modelRequest) directive(name string) (string, bool) {
	if len(t.tools) == 0 || t.isToolResult && name == "run" {
		return "", false
	}
	m := regexp.MustCompile(`(?s)\[\[` + name + ` (.*?)\]\]`).FindStringSubmatch(t.newestText)
	if m == nil {
		return "", false
	}
	return m[1], true
}

// ServeHTTP answers as the API does that is asked.
func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	path := r.URL.Path
	var speak func(http.ResponseWriter, modelRequest)
	var t modelRequest
	switch {
	case strings.HasSuffix(path, "/count_tokens"), strings.HasSuffix(path, ":countTokens"):
		writeJSON(w, map[string]any{"input_tokens": 1, "totalTokens": 1})
		return
	case strings.HasSuffix(path, "/messages") && r.Method == http.MethodPost:
		t, speak = parseAnthropic(body), writeAnthropic
	case strings.HasSuffix(path, "/responses") && r.Method == http.MethodPost:
		t, speak = parseOpenAI(body), writeOpenAI
	case strings.HasSuffix(path, ":streamGenerateContent"):
		t, speak = parseGemini(body), writeGemini
	case strings.HasSuffix(path, ":generateContent"):
		writeJSON(w, geminiParts(map[string]any{"text": `{"reasoning":"x","model_choice":"flash"}`}))
		return
	default:
		http.NotFound(w, r)
		return
	}
	m.recordRequest(&t, planFilePattern.Find(body))
	if status, ok := t.directive("fail"); ok {
		code, _ := strconv.Atoi(status)
		http.Error(w, `{"type":"error","error":{"type":"api_error","message":"as asked"}}`, code)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	if ms, ok := t.directive("wait"); ok && !t.isToolResult {
		n, _ := strconv.Atoi(ms)
		timer := time.NewTimer(time.Duration(n) * time.Millisecond)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-r.Context().Done():
			return
		}
	}
	speak(w, t)
}

func (m *Model) recordRequest(t *modelRequest, planFile []byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(planFile) > 0 {
		m.planFile = string(planFile)
	}
	m.requests++
	t.number = m.requests
	if len(t.tools) > 0 && len(t.texts) > 0 {
		m.texts = t.texts
	}
}

func (t modelRequest) reply() string {
	if text, ok := t.directive("say"); ok {
		return text
	}
	if n, ok := t.directive("lines"); ok {
		var b strings.Builder
		count, _ := strconv.Atoi(n)
		for i := range count {
			_, _ = fmt.Fprintf(&b, "line %06d of a long answer\n", i)
		}
		return b.String()
	}
	return fmt.Sprintf("Answer %d to %d texts.", t.number, len(t.texts))
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func sendEvent(w http.ResponseWriter, name string, v map[string]any) {
	if name != "" {
		v["type"] = name
		_, _ = fmt.Fprintf(w, "event: %s\n", name)
	}
	data, _ := json.Marshal(v)
	_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

var injectedText = regexp.MustCompile(`(?s)<(system-reminder|environment_context|session_context)>.*?</(system-reminder|environment_context|session_context)>`)

// codexTitlePrompt begins what Codex asks a model for beside the conversation, at any moment of its first turn.
const codexTitlePrompt = "Generate a concise, single-line task title"

// addText adds a text of the user's unless the program wrote it.
func (t *modelRequest) addText(text string, newest bool) {
	text = strings.TrimSpace(injectedText.ReplaceAllString(text, ""))
	if text == "" || strings.HasPrefix(text, "# AGENTS.md") || strings.HasPrefix(text, codexTitlePrompt) {
		return
	}
	t.texts = append(t.texts, text)
	if newest {
		t.newestText += text + "\n"
	}
}

func parseAnthropic(body []byte) modelRequest {
	var q struct {
		Model    string
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
		Tools []struct{ Name string }
	}
	_ = json.Unmarshal(body, &q)
	t := modelRequest{model: q.Model}
	for _, tool := range q.Tools {
		t.tools = append(t.tools, tool.Name)
	}
	answered := 0 // after /clear, what was asked is followed by more messages of the user's
	for i, msg := range q.Messages {
		if msg.Role == "assistant" {
			answered = i
		}
	}
	for i, msg := range q.Messages {
		if msg.Role != "user" {
			continue
		}
		var blocks []struct{ Type, Text string }
		var text string
		if json.Unmarshal(msg.Content, &text) == nil {
			blocks = []struct{ Type, Text string }{{"text", text}}
		} else {
			_ = json.Unmarshal(msg.Content, &blocks)
		}
		for _, b := range blocks {
			newest := i >= answered
			t.isToolResult = t.isToolResult || newest && b.Type == "tool_result"
			if b.Type == "text" {
				t.addText(b.Text, newest)
			}
		}
	}
	return t
}

func writeAnthropic(w http.ResponseWriter, t modelRequest) {
	usage := map[string]any{"input_tokens": 1, "output_tokens": 1, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
	sendEvent(w, "message_start", map[string]any{"message": map[string]any{"id": fmt.Sprintf("msg_%d", t.number), "type": "message",
		"role": "assistant", "model": t.model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": usage}})
	sendEvent(w, "content_block_start", map[string]any{"index": 0, "content_block": map[string]any{"type": "text", "text": ""}})
	sendEvent(w, "content_block_delta", map[string]any{"index": 0, "delta": map[string]any{"type": "text_delta", "text": t.reply()}})
	sendEvent(w, "content_block_stop", map[string]any{"index": 0})
	stop := "end_turn"
	for i, c := range t.toolCalls() {
		stop = "tool_use"
		sendEvent(w, "content_block_start", map[string]any{"index": 1 + i, "content_block": map[string]any{"type": "tool_use",
			"id": fmt.Sprintf("toolu_%d_%d", t.number, i), "name": c.tool, "input": map[string]any{}}})
		sendEvent(w, "content_block_delta", map[string]any{"index": 1 + i, "delta": map[string]any{"type": "input_json_delta", "partial_json": c.input}})
		sendEvent(w, "content_block_stop", map[string]any{"index": 1 + i})
	}
	sendEvent(w, "message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": map[string]any{"output_tokens": 1}})
	sendEvent(w, "message_stop", map[string]any{})
}

// toolCall is a tool that is to be used.
type toolCall struct{ tool, input string }

// toolCalls are the tools that the newest text asks for.
func (t modelRequest) toolCalls() []toolCall {
	var all []toolCall
	if command, ok := t.directive("run"); ok {
		tool, input := shellTool(t.tools, command)
		all = append(all, toolCall{tool, input})
	}
	if len(t.tools) > 0 && !t.isToolResult {
		for _, m := range regexp.MustCompile(`(?s)\[\[call (\S+) (.*?)\]\](?:\s|$)`).FindAllStringSubmatch(t.newestText, -1) {
			all = append(all, toolCall{m[1], m[2]})
		}
	}
	return all
}

// shellTool is the tool among those offered that runs a command, with its input.
func shellTool(tools []string, command string) (name, input string) {
	field := map[string]string{"Bash": "command", "bash": "command", "exec_command": "cmd", "shell_command": "command", "run_shell_command": "command"}
	for _, tool := range tools {
		if f := field[tool]; f != "" {
			data, _ := json.Marshal(map[string]any{f: command, "description": "as asked"})
			return tool, string(data)
		}
	}
	return "none", "{}"
}

func parseOpenAI(body []byte) modelRequest {
	var q struct {
		Model string
		Input []struct {
			Type, Role string
			Content    json.RawMessage
		}
		Tools []struct{ Type, Name string }
	}
	_ = json.Unmarshal(body, &q)
	t := modelRequest{model: q.Model}
	for _, tool := range q.Tools {
		t.tools = append(t.tools, tool.Name)
	}
	for i, item := range q.Input {
		newest := i == len(q.Input)-1
		t.isToolResult = newest && strings.HasSuffix(item.Type, "_output")
		if item.Type == "additional_tools" { // where Codex 0.171 puts them for the newest models
			t.tools = append(t.tools, "exec")
		}
		var blocks []struct{ Text string }
		if item.Role != "user" || json.Unmarshal(item.Content, &blocks) != nil {
			continue
		}
		for _, b := range blocks {
			t.addText(b.Text, newest)
		}
	}
	return t
}

func writeOpenAI(w http.ResponseWriter, t modelRequest) {
	id := fmt.Sprintf("resp_%d", t.number)
	items := []any{map[string]any{"type": "message", "role": "assistant", "id": fmt.Sprintf("item_%d", t.number), "status": "completed",
		"content": []any{map[string]any{"type": "output_text", "text": t.reply(), "annotations": []any{}}}}}
	if command, ok := t.directive("run"); ok {
		script, _ := json.Marshal(map[string]any{"cmd": command, "sandbox_permissions": "require_escalated", "justification": "as asked"})
		items = append(items, map[string]any{"type": "custom_tool_call", "id": fmt.Sprintf("tool_%d", t.number), "call_id": fmt.Sprintf("call_%d", t.number),
			"name": "exec", "input": "text(await tools.exec_command(" + string(script) + "))", "status": "completed"})
	}
	sendEvent(w, "response.created", map[string]any{"response": map[string]any{"id": id}})
	for i, item := range items {
		sendEvent(w, "response.output_item.done", map[string]any{"output_index": i, "item": item})
	}
	sendEvent(w, "response.completed", map[string]any{"response": map[string]any{"id": id, "output": items,
		"usage": map[string]any{"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}}})
}

func parseGemini(body []byte) modelRequest {
	var q struct {
		Contents []struct {
			Role  string
			Parts []struct {
				Text             string
				FunctionResponse json.RawMessage
			}
		}
		Tools []struct{ FunctionDeclarations []struct{ Name string } }
	}
	_ = json.Unmarshal(body, &q)
	var t modelRequest
	for _, group := range q.Tools {
		for _, f := range group.FunctionDeclarations {
			t.tools = append(t.tools, f.Name)
		}
	}
	for i, c := range q.Contents {
		newest := i == len(q.Contents)-1
		for _, p := range c.Parts {
			t.isToolResult = t.isToolResult || newest && len(p.FunctionResponse) > 0
			if c.Role == "user" && p.Text != "" {
				t.addText(p.Text, newest)
			}
		}
	}
	return t
}

func geminiParts(parts ...any) map[string]any {
	return map[string]any{"candidates": []any{map[string]any{"index": 0, "finishReason": "STOP",
		"content": map[string]any{"role": "model", "parts": parts}}},
		"usageMetadata": map[string]any{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}}
}

func writeGemini(w http.ResponseWriter, t modelRequest) {
	parts := []any{map[string]any{"text": t.reply()}}
	if command, ok := t.directive("run"); ok {
		tool, input := shellTool(t.tools, command)
		parts = append(parts, map[string]any{"functionCall": map[string]any{"name": tool, "args": json.RawMessage(input)}})
	}
	sendEvent(w, "", geminiParts(parts...))
}
