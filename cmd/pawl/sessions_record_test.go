package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

// only chooses scripts, and record has the real CLIs play them and keeps what they printed:
//
//	PAWL_TEST_ALL=1 go test ./cmd/pawl -run TestEvalScriptedSessions -timeout 1h -record -only codex/
var (
	record = flag.Bool("record", false, "record the sessions of testdata/sessions anew")
	only   = flag.String("only", "", "record those of them alone whose CLI/name match this expression")
)

const recordedSessions = "../../testdata/sessions"

// recordedSession is session.json of a recording: what Pawl, which ran the CLI, counted and how it ended.
type recordedSession struct {
	CLI     string         `json:"cli"`
	Version string         `json:"version"`
	Script  string         `json:"script"`
	Circles bool           `json:"circles"`
	Steps   int            `json:"steps"`
	Ending  policy.Ending  `json:"ending"`
	Outcome policy.Outcome `json:"outcome"`
	Edits   policy.Edits   `json:"edits"`
}

func recordingOf(cli, script string) string {
	return filepath.Join(recordedSessions, cli, strings.ReplaceAll(strings.ToLower(script), " ", "-"))
}

// recordSession has a real CLI play a script through pawl run, in the sandbox, and keeps the first attempt.
func recordSession(t *testing.T, cli realCLI, s script) {
	d := s.draft(t)
	st := newStand(t, cli, "script")
	steps, err := json.Marshal(d.steps)
	if err != nil {
		t.Fatal(err)
	}
	st.provider.Set("script", string(steps))
	st.more = "policy: {restarts: {max: 0}}"
	for name, text := range shopFiles() {
		st.write("widgets/"+name, text)
	}
	st.git("add", ".")
	st.git("-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "-qm", "The shop")
	r := st.run()
	first := r.Attempts[0]
	kept := recordedSession{CLI: cli.kind, Version: cli.version, Script: s.name, Circles: s.circles, Steps: len(d.steps), Ending: first.Ending, Outcome: first.Outcome, Edits: first.Edits}
	short := strings.NewReplacer(filepath.Join(r.Transcripts, "attempts/local/widgets/1/work/checkout"), "/repo", filepath.Dir(st.modules), "/clis")
	kept.Edits.SameCall = short.Replace(kept.Edits.SameCall)
	told, err := json.MarshalIndent(kept, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	a := &txtar.Archive{Comment: []byte("Made by go test ./cmd/pawl -run TestEvalScriptedSessions -record; see docs/verdicts.md.\n"), Files: []txtar.File{
		{Name: "session.json", Data: append(told, '\n')}, {Name: "stdout.jsonl", Data: slim(t, short.Replace(st.transcript(first.Receipt)))},
	}}
	if cli.kind == "codex" {
		a.Files = append(a.Files, txtar.File{Name: "rollout-events.jsonl", Data: slim(t, short.Replace(st.sessionFile(r)))})
	}
	path := recordingOf(cli.kind, s.name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".txtar", txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sessionFile is what Codex wrote into its HOME.
func (s *stand) sessionFile(r runResult) string {
	s.t.Helper()
	var found []byte
	err := filepath.WalkDir(r.Transcripts, func(path string, e fs.DirEntry, err error) error {
		if err == nil && strings.HasPrefix(e.Name(), "rollout-") {
			found, err = os.ReadFile(path)
		}
		return err
	})
	if err != nil || found == nil {
		s.t.Fatalf("%d bytes of a session file, %v", len(found), err)
	}
	return string(found)
}

// bulky are the fields of streams and session files that no adapter reads and that are most of their bytes:
// settings, instructions, and what the files held before and after, which is said again with each edit.
var bulky = map[string]bool{
	"agents": true, "apiKeySource": true, "base_instructions": true, "capabilities": true, "context_management": true, "encrypted_content": true, "internal_chat_message_metadata_passthrough": true,
	"instructions": true, "mcp_servers": true, "memory_paths": true, "messageID": true, "metadata": true, "modelUsage": true, "parent_tool_use_id": true, "plugins": true, "skills": true,
	"slash_commands": true, "snapshot": true, "time": true, "tool_use_result": true, "tools": true, "usage": true, "uuid": true, "request_id": true, "stop_sequence": true, "stop_details": true, "diagnostics": true, "stats": true, "turn_attribution": true, "session_attribution": true, "tokens": true, "world_state": true,
}

// maxPrinted is how much of what a tool printed is kept, in bytes.
const maxPrinted = 200

// slim leaves the bulky fields of JSON lines out, and the end of what tools printed.
func slim(t *testing.T, stream string) []byte {
	t.Helper()
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	for line := range strings.Lines(stream) {
		var v map[string]any
		if json.Unmarshal([]byte(line), &v) != nil {
			out.WriteString(line)
			continue
		}
		payload, ok := v["payload"].(map[string]any)
		if kind := fmt.Sprint(payload["type"]); ok && v["type"] != "session_meta" && !strings.Contains(kind, "_call") && !strings.HasPrefix(kind, "task_") {
			continue
		}
		without(v)
		if err := enc.Encode(v); err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func without(v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, inner := range v {
			printed, ok := inner.(string)
			switch {
			case bulky[key]:
				delete(v, key)
			case ok && len(printed) > maxPrinted && (key == "output" || key == "aggregated_output" || key == "content" && v["tool_use_id"] != nil):
				v[key] = strings.ToValidUTF8(printed[:maxPrinted], "") + "…"
			default:
				without(inner)
			}
		}
	case []any:
		for _, inner := range v {
			without(inner)
		}
	}
}

// counted is what the recorded output of a session tells without the files that the agent worked on.
func counted(t *testing.T, cli, path string) policy.Edits {
	t.Helper()
	a, err := clis.ForStream(cli)
	if err != nil {
		t.Fatal(err)
	}
	output := agenttest.Text(t, path, "stdout.jsonl")
	if cli == config.Codex { // whose output names paths only
		output = agenttest.Text(t, path, "rollout-events.jsonl")
	}
	report, err := agent.Inspect(strings.NewReader(output), a, agent.InspectOptions{Dir: "/repo"})
	if err != nil {
		t.Fatal(err)
	}
	return report.Edits
}

// TestEvalScriptedSessions judges the recorded sessions twice: by what pawl run counted while the CLI worked, and by the recorded
// output alone, in which a shell's edits do not show.
func TestEvalScriptedSessions(t *testing.T) {
	judge := policy.Defaults().Severity.Judge
	found, all := map[bool]int{}, map[bool]int{}
	for _, s := range sessionScripts() {
		steps := len(s.draft(t).steps)
		for _, cli := range realCLIs()[:4] { // qwen reads a file before each edit of it, so its steps are others
			name := cli.kind + "/" + s.name
			if chosen, err := regexp.MatchString(*only, name); err != nil || *record && chosen {
				t.Run("record "+name, func(t *testing.T) { recordSession(t, cli, s) })
			}
			path := recordingOf(cli.kind, s.name)
			var was recordedSession
			if err := json.Unmarshal([]byte(agenttest.Text(t, path, "session.json")), &was); err != nil || was.Script != s.name || was.Circles != s.circles || was.Steps != steps {
				t.Fatalf("%s: %v, %+v; want a recording of the script of %d steps: -record makes it", path, err, was, steps)
			}
			live, output := judge(was.Edits), judge(counted(t, cli.kind, path))
			all[s.circles]++
			if live.Class != policy.None {
				found[s.circles]++
			}
			// An event may come so late that an edit counts twice while the CLI works, and one that was cut off has fewer.
			told := output.Class != policy.None || strings.Contains(output.Reasons[0], "in circles")
			if (live.Class != policy.None) != s.circles || !s.unseen && told != s.circles {
				t.Errorf("%s: %s %q, by its output alone %s %q; goes in circles: %v", name, live.Class, live.Reasons, output.Class, output.Reasons, s.circles)
			}
			if !s.circles && (was.Ending != policy.Completed || was.Outcome != policy.Edited) || was.Edits.Operations < 40 || was.Edits.MaxRepeat < 8 || was.Edits.Blind() {
				t.Errorf("%s: %s, %s after %+v; want a whole session above the trigger whose content is known", name, was.Ending, was.Outcome, was.Edits)
			}
		}
	}
	for _, circles := range []bool{false, true} {
		low, high := wilson(found[circles], all[circles])
		t.Logf("scripted sessions of the real CLIs, in circles %v: %d of %d taken for a loop, %.1f to %.1f %% (Wilson, 95 %%)", circles, found[circles], all[circles], 100*low, 100*high)
	}
}

// wilson is the 95 % interval of a share.
func wilson(hits, n int) (low, high float64) {
	const z = 1.96
	p, of := float64(hits)/float64(n), float64(n)
	middle, half := (p+z*z/2/of)/(1+z*z/of), z/(1+z*z/of)*math.Sqrt(p*(1-p)/of+z*z/4/of/of)
	return max(0, middle-half), min(1, middle+half)
}
