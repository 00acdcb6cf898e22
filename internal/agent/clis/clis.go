// Package clis is the one table of the agents: which adapter a kind of backend has,
// and whose transcript a file is. It also runs the operator's own program.
package clis

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/claude"
	"github.com/pawlbot/pawl/internal/agent/codex"
	"github.com/pawlbot/pawl/internal/agent/gemini"
	"github.com/pawlbot/pawl/internal/agent/opencode"
	"github.com/pawlbot/pawl/internal/agent/qwen"
)

// known are the CLIs by the kind of their backends, which their streams are called by, too.
var known = map[string]func() agent.Adapter{
	config.Codex: codex.Adapter, config.Claude: claude.Adapter, config.Gemini: gemini.Adapter, config.OpenCode: opencode.Adapter,
	config.Qwen: qwen.Adapter,
}

// For returns the adapter of a backend kind. The stream, plain where empty, says how output of the kind
// "command" is read.
func For(kind, stream string) (agent.Adapter, error) {
	if adapter := known[kind]; adapter != nil {
		return adapter(), nil
	}
	if kind != "command" {
		return agent.Adapter{}, fmt.Errorf("unknown backend kind %q: use %s or command", kind, strings.Join(config.CLIs(), ", "))
	}
	// The operator's own program gets the prompt on standard input and the attempt in PAWL_ variables.
	cli, err := ForStream(stream)
	if err != nil {
		return agent.Adapter{}, err
	}
	return agent.Adapter{
		Name: kind, Stream: cli.Stream, Command: commandCommand, Parse: cli.Parse, Tries: cli.Tries, Exit: cli.Exit, ReadWait: cli.ReadWait,
	}, nil
}

func ForStream(stream string) (agent.Adapter, error) {
	if stream == "" || stream == config.Plain {
		return agent.Adapter{Name: "command", Stream: config.Plain, Command: commandCommand}, nil
	}
	if adapter := known[stream]; adapter != nil {
		return adapter(), nil
	}
	return agent.Adapter{}, fmt.Errorf("unknown stream %q: use plain, %s", stream, strings.Join(config.CLIs(), ", "))
}

// commandCommand starts the kind "command"; an endpoint reaches it by the client libraries' variables.
func commandCommand(r agent.Request) (agent.Command, error) {
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return agent.Command{}, fmt.Errorf("the backend has no program: set argv to the program and its arguments")
	}
	if err := r.Endpoint.Check("a command", config.OpenAI, config.Anthropic, config.Google); err != nil {
		return agent.Command{}, err
	}
	own := map[string]string{
		"HOME":         r.Home,
		"PAWL_ATTEMPT": strconv.Itoa(r.Attempt),
		"PAWL_THREAD":  r.Thread,
		"PAWL_RUNG":    r.Rung,
		"PAWL_EFFORT":  r.Effort,
	}
	if len(r.TestTool) > 0 {
		own["PAWL_TESTS"] = config.CommandLine(append(slices.Clone(r.TestTool), "--once"))
	}
	return agent.Command{Argv: r.Argv, Env: agent.Environ(r.Allowed(), r.Endpoint.Variables(), own), Stdin: r.Prompt}, nil
}

// Detect names the CLI whose transcript begins with head, of which a few kilobytes are enough; plain where no
// line is an event of one.
func Detect(head []byte) string {
	for raw := range bytes.Lines(head) {
		line := agent.Line(raw)
		kind, subtype := line.Get("type").Str, line.Get("subtype").Str
		has := func(name string) bool { return line.Get(name).Exists() }
		if has("qwen_code_version") { // its other lines are as Claude Code's
			return config.Qwen
		}
		switch kind {
		case "thread.started", "turn.started", "turn.completed", "turn.failed", "item.started", "item.completed",
			"session_meta", "event_msg", "response_item":
			return config.Codex
		case "assistant", "rate_limit_event":
			return config.Claude
		case "step_start":
			return config.OpenCode
		}
		switch {
		case (kind == "system" || kind == "result") && subtype != "":
			return config.Claude
		case has("sessionID"), has("part"):
			return config.OpenCode
		case kind == "init" && has("session_id"), kind == "message" && has("role"), kind == "tool_use" && has("tool_name"),
			kind == "error" && has("severity"):
			return config.Gemini
		}
	}
	return config.Plain
}
