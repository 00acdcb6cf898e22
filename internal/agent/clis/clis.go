// Package clis maps backend kinds and transcripts to adapters. It also has the adapter for the operator's own program.
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

// adapters holds the adapters of config's CLIs by kind.
var adapters = map[string]agent.Adapter{
	config.Codex:    codex.Adapter,
	config.Claude:   claude.Adapter,
	config.Gemini:   gemini.Adapter,
	config.OpenCode: opencode.Adapter,
	config.Qwen:     qwen.Adapter,
}

// adapterOf returns a CLI's adapter, completed from config's table; false for other kinds.
func adapterOf(kind string) (agent.Adapter, bool) {
	adapter, known := adapters[kind]
	row := config.CLIOf(kind)
	adapter.Name = row.Kind
	adapter.Stream = row.Kind
	adapter.Protocols = row.Protocols
	adapter.Version = agent.Version{Checked: row.Version, Package: row.Package}
	return adapter, known
}

// For returns the adapter of a backend kind. stream is the output format of the kind "command"; empty means plain.
func For(kind, stream string) (agent.Adapter, error) {
	if adapter, known := adapterOf(kind); known {
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

// command is the adapter for the operator's own program.
var command = agent.Adapter{
	Name:      config.Command,
	Stream:    config.Plain,
	Protocols: []string{config.OpenAI, config.Anthropic, config.Google},
	Build:     buildCommand,
}

// ForStream returns the adapter of an output format: a CLI's, or plain (also if empty).
func ForStream(stream string) (agent.Adapter, error) {
	switch stream {
	case "", config.Plain:
		return command, nil
	}
	if adapter, known := adapterOf(stream); known {
		return adapter, nil
	}
	return agent.Adapter{}, fmt.Errorf("unknown stream %q: use plain, %s", stream, strings.Join(config.CLIs(), ", "))
}

// buildCommand passes the attempt in PAWL_ variables, and an endpoint in the client library's variables.
func buildCommand(r agent.Request) (agent.Launch, error) {
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return agent.Launch{}, errors.New("the backend has no program: set argv to the program and its arguments")
	}
	env := r.Endpoint.Variables()
	env["PAWL_ATTEMPT"] = strconv.Itoa(r.Attempt)
	env["PAWL_THREAD"] = r.Thread
	env["PAWL_RUNG"] = r.Rung
	env["PAWL_EFFORT"] = r.Effort
	if len(r.TestTool) > 0 {
		env["PAWL_TESTS"] = config.CommandLine(append(slices.Clone(r.TestTool), "--once"))
	}
	return agent.Launch{Env: env}, nil
}

// Detect finds the CLI that wrote a transcript from its first kilobytes; plain if no line is a CLI's event. A CLI with
// another CLI's format follows that CLI in the table, so the table is searched backwards.
func Detect(head []byte) string {
	kinds := config.CLIs()
	slices.Reverse(kinds)
	for raw := range bytes.Lines(head) {
		line := agent.Line(raw)
		for _, kind := range kinds {
			if adapters[kind].Wrote(line) {
				return kind
			}
		}
	}
	return config.Plain
}
