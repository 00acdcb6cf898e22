// Package agenttest reads the runs of real agent CLIs that testdata/agents
// holds, one txtar archive a run, for the tests of several rooms.
//
// A run has expected.json (what its ending should be called), exit.txt and,
// where the CLI wrote them, stdout.jsonl, stderr.txt and, from Codex,
// rollout-events.jsonl; a second step of the same session has exit2.txt and so
// on. Every file of an archive ends in a newline; where the CLI wrote none, the
// archive's comment says so.
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

// EveryCLI returns a test's table by kind, and fails the test for each CLI of config's table that has no entry. The
// entry of a CLI to which the test does not apply is empty, and its comment says why.
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

// Names gives the runs in a folder, sorted. Folders count as runs too: a
// recording is a folder before it is packed.
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

// Files gives the files of one run.
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

// Text gives one file of a run, "" where the run has none of this name.
func Text(t testing.TB, run, name string) string {
	t.Helper()
	b, err := fs.ReadFile(Files(t, run), name)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(b)
}

// Unpack writes the files of one run into a new folder of the test.
func Unpack(t testing.TB, run string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, Files(t, run)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Script is a session that a scripted model has the real CLIs play, over the repository of testdata/sessions/shop.txtar.
type Script struct {
	Name    string
	About   string            // what the agent does
	Circles bool              // whether it goes in circles
	Unseen  bool              // the CLI's output does not show that
	Steps   []json.RawMessage `json:"-"` // calls of tools, each a fakeprovider.Step
}

// Scripts gives the scripts in a folder: a line about each, and a line for each of its steps.
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

// Recording is where testdata/sessions, the folder, keeps how a CLI played a script.
func (s Script) Recording(sessions, cli string) string {
	return filepath.Join(sessions, cli, strings.ReplaceAll(strings.ToLower(s.Name), " ", "-"))
}

// Session is session.json of such a recording: what Pawl, which ran the CLI, counted and how it ended.
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
