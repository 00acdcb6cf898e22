package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/lab/rig"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// The aims are relative to the same commands run by hand: a ratio, plus a constant for checkout, sandbox and GitHub in
// a warm run.
const (
	groundRatio = 1.5
	groundExtra = 2 * time.Second
)

// project is a repository of testdata/ground with its usual commands.
type project struct {
	name          string
	tool          []string // prints the tool chain's folder
	path          string   // the folder of its programs, below the tool chain's folder
	setup, verify string   // setup may be empty
	change        string   // the agent's change
}

func projects() []project {
	return []project{
		{"go", []string{"go", "env", "GOROOT"}, "bin", "", "go test ./...", "echo '// Twice is twice as many.\nfunc Twice(n int) int { return 2 * n }' >> words.go"},
		{"node", []string{"node", "-p", "path.dirname(path.dirname(process.execPath))"}, "bin", "npm ci --no-audit --no-fund --cafile /etc/ssl/certs/ca-certificates.crt", "npm test", "echo 'exports.twice = (/** @type {number} */ n) => 2 * n' >> words.js"},
		{"python", []string{"python3", "-c", "import sys; print(sys.base_prefix)"}, "bin",
			"python3 -m venv .venv && .venv/bin/pip install --quiet --no-index --find-links vendor -r requirements.txt", ".venv/bin/python -m unittest",
			"printf '\\n\\ndef twice(n):\\n    return 2 * n\\n' >> words.py"},
		{"rust", []string{"rustc", "--print", "sysroot"}, "bin", "cargo build --offline --tests", "cargo test --offline", "echo 'pub fn twice(n: usize) -> usize { 2 * n }' >> src/lib.rs"},
	}
}

// measureGround solves two issues in each project. It runs the same commands by hand in a new clone and in a warm one.
// An attempt's time is from the user's command to the attempt's end.
func measureGround(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	modes, notes := sandboxModes(ctx)
	root, err := rig.ProjectRoot(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range projects() {
		output, err := exec.CommandContext(ctx, p.tool[0], p.tool[1:]...).Output()
		if err != nil {
			notes = append(notes, fmt.Sprintf("ground: %s was not measured: %s", p.name, err))
			continue
		}
		tools := strings.TrimSpace(string(output))
		files, err := projectFiles(filepath.Join(root, "lab/bench/testdata/ground", p.name))
		if err != nil {
			return nil, nil, err
		}
		own := filepath.Join(dir, p.name)
		cold, warm, err := p.byHand(ctx, own+"-by-hand", tools, files)
		if err != nil {
			return nil, nil, err
		}
		first, second, most, layer, err := p.attempts(ctx, bin, own, modes[0], tools, files)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", p.name, err)
		}
		rows = append(rows,
			row{p.name + ": setup and tests by hand, in a new clone with an empty HOME", seconds(cold), "", false},
			row{p.name + ": the first attempt, from the command to its end", fmt.Sprintf("%s, %.2f ×", seconds(first), first.Seconds()/cold.Seconds()), "≤ 1.5 ×", first.Seconds() <= groundRatio*cold.Seconds()},
			row{p.name + ": the tests by hand after the change, with warm caches", seconds(warm), "", false},
			row{p.name + ": the attempt on the next issue", seconds(second), fmt.Sprintf("≤ 1.5 × + 2 s = %.1f s", groundRatio*warm.Seconds()+groundExtra.Seconds()), second.Seconds() <= groundRatio*warm.Seconds()+groundExtra.Seconds()},
			row{p.name + ": maximum disk space of the second attempt; disk space of the layer, which all attempts share", fmt.Sprintf("%s; %s", megabytes(most), megabytes(layer)), "", false})
	}
	return rows, notes, nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

func projectFiles(dir string) (map[string]string, error) {
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		name, relErr := filepath.Rel(dir, path)
		files[name] = string(text)
		return errors.Join(err, relErr)
	})
	return files, err
}

// shell returns a command for sh with the tool chain in PATH.
func (p project) shell(tools, command string) string {
	return fmt.Sprintf("export PATH=%s:$PATH && %s", filepath.Join(tools, p.path), command)
}

// byHand runs setup and tests in a new folder, then the tests again on the change.
func (p project) byHand(ctx context.Context, dir, tools string, files map[string]string) (cold, warm time.Duration, err error) {
	work, home := filepath.Join(dir, "work"), filepath.Join(dir, "home")
	if err := os.MkdirAll(home, 0o700); err != nil {
		return 0, 0, err
	}
	for name, text := range files {
		path := filepath.Join(work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			return 0, 0, err
		}
	}
	run := func(command string) error {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", p.shell(tools, command))
		cmd.Dir, cmd.Env = work, []string{"HOME=" + home, "PATH=/usr/local/bin:/usr/bin:/bin"}
		if output, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%s by hand: %w\n%s", p.name, err, output)
		}
		return nil
	}
	began := time.Now()
	for _, command := range []string{cmp.Or(p.setup, "true"), p.verify} {
		if err := run(command); err != nil {
			return 0, 0, err
		}
	}
	cold = time.Since(began)
	if err := run(p.change); err != nil {
		return 0, 0, err
	}
	began = time.Now()
	err = run(p.verify)
	return cold, time.Since(began), err
}

// disk returns the disk space of a folder's files in bytes. It counts whole blocks, and each hard-linked file once.
func disk(dir string) (sum int64, err error) {
	seen := map[uint64]bool{}
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok && !seen[stat.Ino] {
			seen[stat.Ino] = true
			sum += stat.Blocks * 512
		}
		return nil
	})
	return sum, err
}

// watchDisk measures the disk space of a data directory's attempts and verifications ten times a second, until stop is
// called. It keeps the maximum in most.
func watchDisk(data string, most *int64) (stop func()) {
	*most = 0
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for {
			sum := int64(0)
			for _, dir := range []string{"attempts", "verify"} {
				n, _ := disk(filepath.Join(data, dir)) // fails if a file disappears during the measurement
				sum += n
			}
			*most = max(*most, sum)
			select {
			case <-ended:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() { close(ended); <-done }
}

// attempts solves two issues of one repository, one after the other. most is the maximum disk space of the second
// attempt, in bytes. layer is the size of the layer that both begin with, in bytes.
func (p project) attempts(ctx context.Context, bin, dir, mode, tools string, files map[string]string) (first, second time.Duration, most, layer int64, err error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return 0, 0, 0, 0, err
	}
	config := fmt.Sprintf("verify: [%q]\n", p.shell(tools, p.verify))
	if p.setup != "" {
		config += fmt.Sprintf("environment: {setup: [%q]}\n", p.shell(tools, p.setup))
	}
	if !strings.HasPrefix(tools, "/usr") { // every sandbox sees /usr
		mode += fmt.Sprintf(", read_only: [%q]", tools)
	}
	mode += ", network: open" // setups use this machine's registry
	r, err := newBench(ctx, bin, dir, "cat > /dev/null\n"+p.change+"\n", "plain", mode, "")
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	all := map[string]string{".github/pawl.yml": config}
	for name, text := range files {
		all[name] = text
	}
	if _, err := r.World.PushCommit(ctx, repo, writer, fakegithub.Commit{Branch: "main", Files: all}); err != nil {
		return 0, 0, 0, 0, err
	}
	if _, err := r.Start(ctx); err != nil {
		return 0, 0, 0, 0, err
	}
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return 0, 0, 0, 0, err
	}
	defer db.Close()
	for _, took := range []*time.Duration{&first, &second} {
		stop := watchDisk(filepath.Join(dir, "data"), &most)
		_, log, err := r.Solve(ctx, db)
		stop()
		if err != nil {
			return 0, 0, 0, 0, err
		}
		if *took, err = commandToEnd(log); err != nil {
			return 0, 0, 0, 0, err
		}
	}
	layer, err = disk(attempt.LayersIn(filepath.Join(dir, "data")))
	return first, second, most, layer, err
}

// commandToEnd returns the time from the command to the attempt's end. It fails unless one attempt solved the issue.
func commandToEnd(log []thread.Event) (time.Duration, error) {
	var commanded, ended time.Time
	for _, e := range log {
		switch e.Kind {
		case thread.KindFeedback:
			commanded = e.At
		case thread.KindAttemptEnded:
			ended = e.At
		}
	}
	state, err := thread.Fold(log)
	if err != nil {
		return 0, err
	}
	if len(state.Attempts) != 1 || state.Decision.Action != "done" {
		return 0, fmt.Errorf("the issue was not solved in one attempt: %+v", state.Decision)
	}
	for _, v := range state.Attempts[0].Receipt.Verify {
		if !v.Passed {
			return 0, fmt.Errorf("%s failed:\n%s", v.Command, v.Output)
		}
	}
	return ended.Sub(commanded), nil
}
