// Package clis is the one table of the agents: which adapter a kind of backend has,
// and whose transcript a file is. It also runs the operator's own program.
package clis

import (
	"bytes"
	"errors"
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
var known = map[string]agent.Adapter{
	config.Codex: codex.Adapter, config.Claude: claude.Adapter, config.Gemini: gemini.Adapter, config.OpenCode: opencode.Adapter,
	config.Qwen: qwen.Adapter,
}

// For returns the adapter of a backend kind. The stream, plain where empty, says how output of the kind
// "command" is read.
func For(kind, stream string) (agent.Adapter, error) {
	if adapter, ok := known[kind]; ok {
		return adapter, nil
	}
	if kind != config.Command {
		return agent.Adapter{}, fmt.Errorf("unknown backend kind %q: use %s or command", kind, strings.Join(config.CLIs(), ", "))
	}
	cli, err := ForStream(stream)
	if err != nil {
		return agent.Adapter{}, err
	}
	own := command
	own.Stream, own.Parse, own.Exit, own.ReadTry = cli.Stream, cli.Parse, cli.Exit, cli.ReadTry
	return own, nil
}

// command is the operator's own program, whose output has no structure.
var command = agent.Adapter{
	Name: config.Command, Stream: config.Plain, Protocols: []string{config.OpenAI, config.Anthropic, config.Google}, Build: buildCommand,
}

func ForStream(stream string) (agent.Adapter, error) {
	if stream == "" || stream == config.Plain {
		return command, nil
	}
	if adapter, ok := known[stream]; ok {
		return adapter, nil
	}
	return agent.Adapter{}, fmt.Errorf("unknown stream %q: use plain, %s", stream, strings.Join(config.CLIs(), ", "))
}

// buildCommand adds what the operator's own program gets: the attempt in PAWL_ variables, an endpoint in those of the
// client libraries.
func buildCommand(r agent.Request) (agent.Launch, error) {
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return agent.Launch{}, errors.New("the backend has no program: set argv to the program and its arguments")
	}
	env := r.Endpoint.Variables()
	env["PAWL_ATTEMPT"], env["PAWL_THREAD"], env["PAWL_RUNG"], env["PAWL_EFFORT"] = strconv.Itoa(r.Attempt), r.Thread, r.Rung, r.Effort
	if len(r.TestTool) > 0 {
		env["PAWL_TESTS"] = config.CommandLine(append(slices.Clone(r.TestTool), "--once"))
	}
	return agent.Launch{Env: env}, nil
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
