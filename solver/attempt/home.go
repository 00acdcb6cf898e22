package attempt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/testreport"
	"github.com/pawlbot/pawl/policy"
)

// login mounts the account's login if the operator configured it.
func (c *checkout) login(home string, spec *sandbox.Spec) error {
	credential := c.backend().CredentialFile
	if credential == "" || c.adapter.Credential == "" {
		return nil
	}
	if c.Env.Sandbox.Mode() != sandbox.None {
		to := filepath.Join(insideHome, filepath.FromSlash(c.adapter.Credential))
		spec.Mounts = append(spec.Mounts, sandbox.Mount{From: credential, To: to})
		// An earlier attempt may have left a link there; writeFiles replaces it.
		return writeFiles(home, map[string]string{c.adapter.Credential: ""})
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	return errors.Join(clearPath(root, c.adapter.Credential), root.Symlink(credential, c.adapter.Credential))
}

// writeFiles writes configuration files below HOME. It never follows links out of HOME and replaces whatever is in
// the way.
func writeFiles(home string, files map[string]string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, text := range files {
		err := clearPath(root, name)
		if err == nil {
			err = root.WriteFile(name, []byte(text), 0o600)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// clearPath creates a file's folders below a root and removes what is in the way.
func clearPath(root *os.Root, name string) error {
	parts := strings.Split(name, "/")
	for i := range parts[1:] {
		if err := makeFolder(root, strings.Join(parts[:i+1], "/")); err != nil {
			return err
		}
	}
	return root.RemoveAll(name)
}

func makeFolder(root *os.Root, dir string) error {
	info, err := root.Lstat(dir)
	if err == nil && !info.IsDir() {
		if err := root.Remove(dir); err != nil {
			return err
		}
	}
	err = root.Mkdir(dir, 0o700)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Input and journal of the test tool, below HOME. The agent may change them; only the later verification counts.
const (
	toolSpec    = ".pawl/tests.json"
	toolJournal = ".pawl/tests.jsonl"
)

// testTool adds the files of run_tests and returns its command line, or none without verify commands.
func (c *checkout) testTool(ctx context.Context, files map[string]string) ([]string, error) {
	e := c.Ground.Effective
	if c.Env.Program == "" || !offersTests(e) {
		return nil, nil
	}
	if err := c.based(ctx); err != nil {
		return nil, err
	}
	dir, at := c.Env.inside(c.ws.Dir, c.Env.homeOf(c.Thread))
	spec, err := json.Marshal(map[string]any{
		"dir": dir, "commands": e.Verify, "reports": e.Reports, "before": c.Ground.Before, "timeout_seconds": int(verifyTimeout.Seconds()),
		"max_calls": e.Policy.Ladder.RunTestsCalls, "journal": filepath.Join(at, toolJournal),
	})
	if err != nil {
		return nil, err
	}
	files[toolSpec], files[toolJournal] = string(spec), "" // the journal may be an earlier run's
	return []string{c.Env.Program, "mcp", "--spec", filepath.Join(at, toolSpec)}, nil
}

func (c *checkout) ranTests() {
	var data []byte
	root, err := os.OpenRoot(c.Env.homeOf(c.Thread))
	if err == nil {
		defer root.Close()
		data, err = testreport.ReadRegular(root, toolJournal)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Info().Err(err).Msg("the test tool's journal was not read")
	}
	var calls []policy.TestCall
	for line := range bytes.Lines(data) {
		var call policy.TestCall
		if json.Unmarshal(line, &call) == nil {
			calls = append(calls, call)
		}
	}
	if len(calls) > 0 {
		c.Receipt.Rungs = append(c.Receipt.Rungs, policy.RanTests(calls))
	}
}
