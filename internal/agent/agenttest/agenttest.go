// Package agenttest reads recorded runs of real agent CLIs in testdata/agents, one txtar archive per run.
//
// A run has expected.json (the expected ending), exit.txt and, if written, stdout.jsonl, stderr.txt and Codex's
// rollout-events.jsonl. A second step of the session has exit2.txt and so on. All files of an archive end in a
// newline; the archive's comment names those that the CLI wrote without one.
package agenttest

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// EveryCLI returns a test's table by kind, and fails the test for CLIs without an entry. If the test does not apply to
// a CLI, leave its entry empty and add a comment.
func EveryCLI[T any](t testing.TB, table map[string]T) map[string]T {
	t.Helper()
	for _, kind := range config.CLIs() {
		if _, has := table[kind]; !has {
			t.Errorf("%s has no entry for %s", t.Name(), kind)
		}
	}
	return table
}

const extension = ".txtar"

// Names returns the sorted runs in a folder. An unpacked run is a subfolder.
func Names(t testing.TB, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		if entry.IsDir() || filepath.Ext(entry.Name()) == extension {
			names = append(names, strings.TrimSuffix(entry.Name(), extension))
		}
	}
	return names
}

func Files(t testing.TB, run string) fs.FS {
	t.Helper()
	archive, err := txtar.ParseFile(run + extension)
	if os.IsNotExist(err) {
		return os.DirFS(run)
	}
	if err != nil {
		t.Fatal(err)
	}
	files, err := txtar.FS(archive)
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Text returns one file of a run; empty if missing.
func Text(t testing.TB, run, name string) string {
	t.Helper()
	b, err := fs.ReadFile(Files(t, run), name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// Unpack writes the files of one run into a temporary folder.
func Unpack(t testing.TB, run string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, Files(t, run)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Script is a session that a scripted model plays with real CLIs, in the repository of testdata/sessions/shop.txtar.
type Script struct {
	Name    string
	About   string            // what the agent does
	Circles bool              // the agent goes in circles
	Unseen  bool              // the CLI's output does not show the circles
	Steps   []json.RawMessage `json:"-"` // tool calls, each a fakeprovider.Step
}

// Scripts returns the scripts in a folder. A file's first line describes the script; each other line is a step.
func Scripts(t testing.TB, dir string) (all []Script) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d scripts in %s, %v", len(files), dir, err)
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		head, steps, _ := strings.Cut(strings.TrimSpace(string(text)), "\n")
		var s Script
		if err := json.Unmarshal([]byte(head), &s); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for step := range strings.SplitSeq(steps, "\n") {
			s.Steps = append(s.Steps, json.RawMessage(step))
		}
		all = append(all, s)
	}
	return all
}

// Recording returns the folder of a CLI's recording in testdata/sessions.
func (s Script) Recording(sessions, cli string) string {
	return filepath.Join(sessions, cli, strings.ReplaceAll(strings.ToLower(s.Name), " ", "-"))
}

// Session is a recording's session.json: Pawl's counts and the ending.
type Session struct {
	CLI     string         `json:"cli"`
	Version string         `json:"version"`
	Script  string         `json:"script"`
	Circles bool           `json:"circles"`
	Steps   int            `json:"steps"`
	Ending  policy.Ending  `json:"ending"`
	Outcome policy.Outcome `json:"outcome"`
	Edits   policy.Edits   `json:"edits"`
}
