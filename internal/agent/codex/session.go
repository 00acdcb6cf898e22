package codex

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// Limits for session files: the agent may have filled HOME.
const (
	maxSessionEntries = 50_000
	maxSessionBytes   = 512 << 20
)

// sessions is codex's folder below HOME with YYYY/MM/DD/rollout-<time>-<thread id>.jsonl.
const sessions = ".codex/sessions"

// openSession opens a thread's session file. It must be a regular file inside home; links must not lead out of home.
func openSession(home, thread string) (io.ReadCloser, error) {
	if !agent.SafeSession.MatchString(thread) {
		return nil, fmt.Errorf("session %q: %w", agent.Shorten(thread, 80), fs.ErrNotExist)
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	name, err := findSession(root.FS(), thread)
	if err != nil {
		return nil, err
	}
	// O_NONBLOCK: opening a named pipe that the agent made must not block.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(fmt.Errorf("session file %s is not a regular file", name), err, f.Close())
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(f, maxSessionBytes), f}, nil
}

func findSession(home fs.FS, thread string) (string, error) {
	found, seen := "", 0
	err := fs.WalkDir(home, sessions, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if seen++; seen > maxSessionEntries {
			return fs.SkipAll
		}
		if d.IsDir() && strings.Count(name, "/") > strings.Count(sessions, "/")+3 {
			return fs.SkipDir
		}
		base := path.Base(name)
		ofThread := strings.HasPrefix(base, "rollout-") && strings.HasSuffix(base, "-"+thread+".jsonl")
		if ofThread {
			found = max(found, name)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("look for session %s: %w", thread, err)
	}
	if found == "" {
		return "", fmt.Errorf("session %s: %w", thread, fs.ErrNotExist)
	}
	return found, nil
}

// FoldSession returns the last turn of a session file. now is the time of reading.
func FoldSession(r io.Reader, now time.Time) (agent.Session, error) {
	var s agent.Session
	var before, total *policy.Tokens
	err := agent.ReadLines(r, func(raw []byte) {
		line := agent.Line(raw)
		payload := line.Get("payload")
		if line.Get("type").Str != "event_msg" {
			return
		}
		switch payload.Get("type").Str {
		case "task_started":
			s, before = agent.Session{}, total
		case "token_count":
			if spent := totalOf(payload); spent != nil {
				total = spent
				if before != nil {
					turn := total.Minus(*before)
					spent = &turn
				}
				s.Tokens = spent
			}
			// Each event has the windows of one model family.
			s.Windows = limit.Newer(s.Windows, limit.CodexWindows(payload.Get("rate_limits"), written(line, now)))
		case "task_complete", "error":
			message, code, ending := failureOf(payload)
			if message != "" {
				s.Failure = agent.Shorten(message, agent.MaxText)
				s.Code = code
				s.Ending = ending
			}
		case "turn_aborted":
			s.Ending, s.Code = policy.Killed, "turn_aborted"
		}
	})
	return s, err
}

// written returns a session line's timestamp, or now if the timestamp is missing or later.
func written(line gjson.Result, now time.Time) time.Time {
	at, err := time.Parse(time.RFC3339, line.Get("timestamp").Str)
	if err != nil || at.After(now) {
		return now
	}
	return at
}

func totalOf(payload gjson.Result) *policy.Tokens {
	return tokensOf(payload.Get("info.total_token_usage"))
}

// failureOf returns an event's error: its message, its code and the code's ending.
func failureOf(payload gjson.Result) (message, code string, ending policy.Ending) {
	failure := payload.Get("error")
	if !failure.Exists() {
		failure = payload
	}
	code, ending = errorOf(failure.Get("codex_error_info"))
	return failure.Get("message").Str, code, ending
}

var endings = map[string]policy.Ending{
	"sandbox_error":           policy.Misconfigured,
	"session_budget_exceeded": policy.TurnLimit,
	"cyber_policy":            policy.NoAnswer,
}

// errorOf returns the code of codex_error_info (a name, or an object with details), and its ending.
func errorOf(info gjson.Result) (string, policy.Ending) {
	code, status := info.Str, int64(0)
	if info.IsObject() {
		info.ForEach(func(key, value gjson.Result) bool {
			code = agent.Shorten(key.Str, 80)
			status = agent.Count(value.Get("http_status_code"))
			return true
		})
	}
	switch code {
	case "http_connection_failed",
		"response_stream_connection_failed",
		"response_stream_disconnected",
		"response_too_many_failed_attempts":
		if status != 0 {
			return fmt.Sprintf("%s (HTTP status %d)", code, status), limit.Read(limit.Evidence{Status: int(status)}).Kind
		}
	}
	if ending := endings[code]; ending != "" || code == "" {
		return code, ending
	}
	return code, limit.Read(limit.Evidence{Names: []string{code}}).Kind
}

// parseRecorded parses a line of a session file: turns, and the agent's commands, patches, tool arguments and
// messages.
func parseRecorded(line gjson.Result, emit func(agent.Event)) {
	payload := line.Get("payload")
	switch line.Get("type").Str {
	case "session_meta":
		emit(agent.Event{Kind: agent.SessionStarted, ID: payload.Get("id").Str, Dir: payload.Get("cwd").Str})
	case "event_msg":
		parseTurn(payload, func(e agent.Event) { agent.EmitFinal(line, e, emit) })
	case "response_item":
		parseWritten(payload, emit)
	}
}

func parseTurn(payload gjson.Result, emit func(agent.Event)) {
	message, code, ending := failureOf(payload)
	message = cmp.Or(message, code)
	switch payload.Get("type").Str {
	case "task_started", "user_message":
		emit(agent.Event{Kind: agent.TurnStarted})
	case "token_count":
		if total := totalOf(payload); total != nil {
			emit(agent.Event{Kind: agent.Thought, Tokens: total})
		}
	case "error":
		emit(agent.Event{Kind: agent.Notice, Text: message, Ending: ending})
	case "task_complete":
		if message != "" {
			emit(agent.Event{Kind: agent.Failed, Text: message, Ending: ending})
			return
		}
		said := payload.Get("last_agent_message")
		emit(agent.Event{Kind: agent.Finished, Text: said.Str, Wordless: said.Exists() && said.Str == ""})
	case "turn_aborted":
		reason := payload.Get("reason").Str
		emit(agent.Event{Kind: agent.Failed, Text: "turn_aborted: " + reason, Ending: policy.Killed})
	}
}

func parseWritten(payload gjson.Result, emit func(agent.Event)) {
	switch payload.Get("type").Str {
	case "function_call":
		emit(callOf(payload, payload.Get("arguments").Str))
	case "custom_tool_call":
		emit(callOf(payload, payload.Get("input").Str))
	case "function_call_output", "custom_tool_call_output":
		emit(answerOf(payload))
	case "local_shell_call":
		emit(agent.Event{Kind: agent.ToolCall, ID: payload.Get("call_id").Str, Ran: true, Authored: payload.Get("action").Raw})
	case "message":
		if payload.Get("role").Str == "assistant" {
			agent.Each(payload.Get("content"), func(part gjson.Result) {
				text := part.Get("text").Str
				emit(agent.Event{Kind: agent.Message, Text: text, Authored: text})
			})
		}
	}
}

func callOf(payload gjson.Result, arguments string) agent.Event {
	return agent.Event{
		Kind:     agent.ToolCall,
		ID:       payload.Get("call_id").Str,
		Ran:      true,
		Authored: payload.Get("name").Str + " " + arguments,
		Edits:    editsOf(arguments),
	}
}

// editsOf returns the patches in a call's arguments. The call is apply_patch, or a shell command given as text or as a
// list of words.
func editsOf(arguments string) []policy.Edit {
	if !strings.Contains(arguments, "*** Begin Patch") {
		return nil
	}
	given := agent.Line([]byte(arguments))
	for _, name := range []string{"input", "command", "cmd"} {
		patch := given.Get(name)
		switch {
		case patch.Str != "":
			return edit.Patch(patch.Str)
		case patch.IsArray():
			var all []policy.Edit
			agent.Each(patch, func(word gjson.Result) {
				edits := edit.Patch(word.Str)
				all = append(all, edits[:min(len(edits), edit.Max-len(all))]...)
			})
			return all
		}
	}
	return edit.Patch(arguments)
}

// exitCode matches a command's exit code in the output for the model.
var exitCode = regexp.MustCompile(`"exit_code":\s*(-?\d+)|(?:Exit code:|Process exited with code) (-?\d+)`)

func answerOf(payload gjson.Result) agent.Event {
	output := payload.Get("output")
	e := agent.Event{Kind: agent.ToolCall, ID: payload.Get("call_id").Str, Done: true}
	e.Answered(false, output.Raw)
	if m := exitCode.FindStringSubmatch(cmp.Or(output.Str, output.Raw)); m != nil && m[1]+m[2] != "0" {
		e.Answered(true, output.Raw)
		// A failed patch changed nothing, and a failed command's edits come only from patches.
		e.Rejected = true
	}
	return e
}
