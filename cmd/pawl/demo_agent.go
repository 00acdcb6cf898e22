package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
)

// demoAgentName is the hidden subcommand that plays the agent of the demo.
const demoAgentName = "demo-agent"

// sceneVariable tells the scripted agent what to play. The demo gives it through
// the list of variables that a backend may have, as an operator would.
const sceneVariable = "DEMO_SCENE"

// The scenes.
const (
	sceneSolve = "solve"
	sceneLimit = "limit"
)

// demoRemark is what the agent of the incident posts through a person's token.
const demoRemark = "Status update: I am still looking at the greeting, and I will continue as soon as I can."

// scene is the environment that backends see in the demo.
type scene struct {
	mu   sync.Mutex
	name string
}

func (s *scene) set(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.name = name
}

func (s *scene) lookup(name string) (string, bool) {
	if name != sceneVariable {
		return os.LookupEnv(name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.name, s.name != ""
}

// demoAgentCommand plays a coding agent that speaks the JSON stream of codex
// 0.169. It really edits the files of its working directory.
func demoAgentCommand() *cobra.Command {
	return &cobra.Command{
		Use: demoAgentName, Hidden: true, DisableFlagParsing: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := io.Copy(io.Discard, cmd.InOrStdin()); err != nil {
				return err
			}
			return playAgent(os.Getenv(sceneVariable), cmd.OutOrStdout(), time.Now())
		},
	}
}

// line is one line of the stream.
type line map[string]any

func playAgent(scene string, out io.Writer, now time.Time) error {
	enc := json.NewEncoder(out)
	say := func(l line) error { return enc.Encode(l) }
	item := func(kind string, fields line) line {
		fields["id"], fields["type"] = "item_"+kind, kind
		return line{"type": "item.completed", "item": fields}
	}
	if err := say(line{"type": "thread.started", "thread_id": "00000000-0000-7000-8000-000000000001"}); err != nil {
		return err
	}
	if err := say(line{"type": "turn.started"}); err != nil {
		return err
	}
	if scene == sceneLimit {
		command := fmt.Sprintf("gh pr comment --body %q", demoRemark)
		if err := say(item("command_execution", line{"command": command, "aggregated_output": "", "exit_code": 0, "status": "completed"})); err != nil {
			return err
		}
		limit := "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at " +
			now.UTC().Add(2*time.Hour).Format("3:04 PM") + "."
		if err := say(line{"type": "error", "message": limit}); err != nil {
			return err
		}
		if err := say(line{"type": "turn.failed", "error": line{"message": limit}}); err != nil {
			return err
		}
		return fmt.Errorf("usage limit")
	}
	text, err := os.ReadFile("greet.sh")
	if err != nil {
		return err
	}
	if err := os.WriteFile("greet.sh", []byte(strings.ReplaceAll(string(text), "Helo", "Hello")), 0o644); err != nil {
		return err
	}
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	change := line{"changes": []line{{"path": dir + "/greet.sh", "kind": "update"}}, "status": "completed"}
	for _, l := range []line{
		item("file_change", change),
		item("agent_message", line{"text": "The greeting is spelled correctly now; test.sh passes."}),
		{"type": "turn.completed", "usage": line{"input_tokens": 2400, "cached_input_tokens": 400, "output_tokens": 68}},
	} {
		if err := say(l); err != nil {
			return err
		}
	}
	return nil
}
