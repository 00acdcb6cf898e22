package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Bounds of looking for and reading a session file: the agent may have filled HOME.
const (
	maxSessionEntries = 50_000
	maxSessionBytes   = 512 << 20
)

// codexSessions is where codex keeps its session files, below HOME, as
// sessions/YYYY/MM/DD/rollout-<time>-<thread id>.jsonl.
const codexSessions = ".codex/sessions"

// sessionFile is an opened session file.
type sessionFile struct {
	io.Reader
	close func() error
}

// Close closes the file.
func (f sessionFile) Close() error { return f.close() }

// openCodexSession opens the session file of a thread. It follows no link out
// of home and opens nothing but regular files. A missing file is fs.ErrNotExist.
func openCodexSession(home, thread string) (sessionFile, error) {
	if !safeSession.MatchString(thread) {
		return sessionFile{}, fmt.Errorf("session %q: %w", shorten(thread, 80), fs.ErrNotExist)
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return sessionFile{}, err
	}
	defer root.Close()
	name, err := findCodexSession(root.FS(), thread)
	if err != nil {
		return sessionFile{}, err
	}
	// O_NONBLOCK: opening a pipe that the agent put there must not wait.
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return sessionFile{}, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return sessionFile{}, errors.Join(fmt.Errorf("session file %s is not a regular file", name), err, f.Close())
	}
	return sessionFile{Reader: io.LimitReader(f, maxSessionBytes), close: f.Close}, nil
}

// findCodexSession returns the newest session file of a thread.
func findCodexSession(home fs.FS, thread string) (string, error) {
	found, seen := "", 0
	err := fs.WalkDir(home, codexSessions, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if seen++; seen > maxSessionEntries {
			return fs.SkipAll
		}
		if d.IsDir() && strings.Count(name, "/") > strings.Count(codexSessions, "/")+3 {
			return fs.SkipDir
		}
		base := path.Base(name)
		if strings.HasPrefix(base, "rollout-") && strings.HasSuffix(base, "-"+thread+".jsonl") && name > found {
			found = name
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

// readCodexSession reads what the session file tells of the last turn.
func readCodexSession(home, thread string) (Session, error) {
	f, err := openCodexSession(home, thread)
	if err != nil {
		return Session{}, err
	}
	defer f.Close()
	return parseCodexSession(f)
}

// parseCodexSession folds the lines of a session file. Each task_started opens
// a turn and makes what the turns before it said old.
func parseCodexSession(r io.Reader) (Session, error) {
	var s Session
	var before, total *Tokens
	err := readLines(r, func(line []byte) {
		payload := member(line, "payload")
		if string(bare(member(line, "type"))) != "event_msg" || payload == nil {
			return
		}
		switch string(bare(member(payload, "type"))) {
		case "task_started":
			s, before = Session{}, total
		case "token_count":
			if usage := member(member(payload, "info"), "total_token_usage"); usage != nil {
				total = codexUsage(usage)
				spent := *total
				if before != nil {
					spent = total.Minus(*before)
				}
				s.Tokens = &spent
			}
			if w := codexWindows(member(payload, "rate_limits")); w != nil {
				s.Windows = w
			}
		case "task_complete", "error":
			if failure := member(payload, "error"); failure != nil {
				s.fail(failure)
			} else if stringOf(member(payload, "message")) != "" {
				s.fail(payload)
			}
		case "turn_aborted":
			s.Ending, s.Code = Killed, "turn_aborted"
		}
	})
	return s, err
}

// fail takes the error object of a turn into account.
func (s *Session) fail(object []byte) {
	message := stringOf(member(object, "message"))
	if message == "" {
		return
	}
	s.Failure = shorten(message, maxText)
	s.Code, s.Ending = codexError(member(object, "codex_error_info"))
}

// codexError names the code of codex_error_info, which is a name or an object
// of a name and details, and the ending that it stands for.
func codexError(info []byte) (string, Ending) {
	code, status := stringOf(info), int64(0)
	members(info, func(key, value []byte) {
		code = shorten(string(key), 80)
		status = intOf(member(value, "http_status_code"))
	})
	switch code {
	case "usage_limit_exceeded":
		return code, UsageLimit
	case "context_window_exceeded":
		return code, ContextOverflow
	case "server_overloaded", "internal_server_error":
		return code, Overloaded
	case "unauthorized":
		return code, Auth
	case "model_not_found", "sandbox_error":
		return code, Misconfigured
	case "session_budget_exceeded":
		return code, TurnLimit
	case "cyber_policy":
		return code, NoAnswer
	case "http_connection_failed", "response_stream_connection_failed", "response_stream_disconnected", "response_too_many_failed_attempts":
		if status == 0 {
			return code, ""
		}
		return fmt.Sprintf("%s (HTTP status %d)", code, status), statusEnding(int(status))
	}
	return code, ""
}

func codexWindows(limits []byte) []Window {
	var windows []Window
	for _, name := range []string{"primary", "secondary"} {
		w := member(limits, name)
		resets := intOf(member(w, "resets_at"))
		used, err := strconv.ParseFloat(string(member(w, "used_percent")), 64)
		if resets > 0 && err == nil {
			windows = append(windows, Window{UsedPercent: used, ResetsAt: time.Unix(resets, 0).UTC()})
		}
	}
	return windows
}

// codexSessionLine gives what the agent itself wrote in one line of a session
// file: commands, patches, tool arguments and messages.
func codexSessionLine(line []byte, emit func(Event)) {
	if string(bare(member(line, "type"))) != "response_item" {
		return
	}
	payload := member(line, "payload")
	switch string(bare(member(payload, "type"))) {
	case "function_call":
		codexCall(payload, stringOf(member(payload, "arguments")), emit)
	case "custom_tool_call":
		codexCall(payload, stringOf(member(payload, "input")), emit)
	case "function_call_output", "custom_tool_call_output":
		emit(codexAnswer(payload))
	case "local_shell_call":
		emit(Event{Kind: ToolCall, Ran: true, Wrote: string(member(payload, "action"))})
	case "message":
		if stringOf(member(payload, "role")) != "assistant" {
			return
		}
		elements(member(payload, "content"), func(part []byte) {
			emit(Event{Kind: Message, Wrote: stringOf(member(part, "text"))})
		})
	}
}

func codexCall(payload []byte, arguments string, emit func(Event)) {
	emit(Event{Kind: ToolCall, ID: stringOf(member(payload, "call_id")), Ran: true,
		Wrote: stringOf(member(payload, "name")) + " " + arguments, Edits: codexCallEdits(arguments)})
}
