//go:build clis

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/local"
)

// record selects sessions to record. The real CLIs play the scripts of testdata/sessions, and their output is saved:
//
//	PAWL_TEST_ALL=1 go test -tags clis ./cmd/pawl -run TestRecordScriptedSessions -timeout 1h -record codex/
var record = flag.String("record", "", "record again the sessions whose CLI/name matches this expression")

const sessions = "../../testdata/sessions"

// TestRecordScriptedSessions records the first four CLIs. They can edit a file without reading it before each edit.
func TestRecordScriptedSessions(t *testing.T) {
	if *record == "" {
		t.Skip("set -record to choose the sessions to record")
	}
	for _, s := range agenttest.Scripts(t, sessions+"/scripts") {
		for _, cli := range realCLIs()[:4] {
			name := cli.kind + "/" + s.Name
			if chosen, err := regexp.MatchString(*record, name); err == nil && chosen {
				t.Run(name, func(t *testing.T) { recordSession(t, cli, s) })
			}
		}
	}
}

// recordSession runs a real CLI with a script through pawl run, in the sandbox, and saves the first attempt.
func recordSession(t *testing.T, cli realCLI, s agenttest.Script) {
	st := newCLIRig(t, cli, "script")
	steps, err := json.Marshal(s.Steps)
	if err != nil {
		t.Fatal(err)
	}
	st.provider.Set("script", string(steps))
	st.more = "policy: {restarts: {max: 0}}"
	shop, err := txtar.ParseFile(sessions + "/shop.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range shop.Files {
		st.write("widgets/"+f.Name, string(f.Data))
	}
	st.commit("The shop")
	r := st.run()
	first := r.Attempts[0]
	recorded := agenttest.Session{
		CLI:     cli.kind,
		Version: cli.version,
		Script:  s.Name,
		Circles: s.Circles,
		Steps:   len(s.Steps),
		Ending:  first.Ending,
		Outcome: first.Outcome,
		Edits:   first.Edits,
	}
	tree := filepath.Join(r.Transcripts, "attempts/local/widgets/1/work/checkout")
	short := strings.NewReplacer(tree, "/repo", filepath.Dir(st.modules), "/clis")
	recorded.Edits.SameCall = short.Replace(recorded.Edits.SameCall)
	recorded.Edits.SameCheck = short.Replace(recorded.Edits.SameCheck)
	recorded.Edits.FailedCall = short.Replace(recorded.Edits.FailedCall)
	summary, err := json.MarshalIndent(recorded, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	a := &txtar.Archive{
		Comment: []byte("Made by go test -tags clis ./cmd/pawl -run TestRecordScriptedSessions; see docs/verdicts.md.\n"),
		Files: []txtar.File{
			{Name: "session.json", Data: append(summary, '\n')},
			{Name: "stdout.jsonl", Data: slim(t, short.Replace(st.transcript(first.Receipt)))},
		},
	}
	if cli.kind == config.Codex {
		a.Files = append(a.Files, txtar.File{Name: "rollout-events.jsonl", Data: slim(t, short.Replace(st.sessionFile(r)))})
	}
	path := s.Recording(sessions, cli.kind) + ".txtar"
	if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}

// sessionFile returns the session file that Codex wrote below its HOME.
func (s *cliRig) sessionFile(r local.Result) string {
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

// bulky are large fields of streams and session files that no adapter reads: settings, instructions, and the files'
// contents before and after each edit.
var bulky = map[string]bool{
	"agents": true, "apiKeySource": true, "base_instructions": true, "capabilities": true, "context_management": true, "encrypted_content": true, "internal_chat_message_metadata_passthrough": true,
	"instructions": true, "mcp_servers": true, "memory_paths": true, "messageID": true, "metadata": true, "modelUsage": true, "parent_tool_use_id": true, "plugins": true, "skills": true,
	"slash_commands": true, "snapshot": true, "time": true, "tool_use_result": true, "tools": true, "usage": true, "uuid": true, "request_id": true, "stop_sequence": true, "stop_details": true, "diagnostics": true, "stats": true, "turn_attribution": true, "session_attribution": true, "tokens": true, "world_state": true,
}

// maxPrinted is the recorded length of a tool's output, in bytes.
const maxPrinted = 200

// slim removes the bulky fields of JSON lines and shortens tools' output.
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
