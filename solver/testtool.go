package solver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// Where the test tool finds what to run and writes what it ran, below HOME. The
// agent can change both, to its own harm only: what counts is the verification
// after the attempt.
const (
	toolSpec    = ".pawl/tests.json"
	toolJournal = ".pawl/tests.jsonl"
	// maxJournal bounds what is read of the journal, in bytes; a call takes a
	// hundred.
	maxJournal = 1 << 20
)

// testTool writes what the tool run_tests needs and returns its command line;
// none where there is nothing to run, or no agent that could call it.
func (s *step) testTool(b config.Backend, p *prepared, dir, home string) ([]string, error) {
	if s.Program == "" || b.Kind == config.Command || !p.effective.Policy.Ladder.RunTestsTool || len(p.effective.Verify) == 0 {
		return nil, nil
	}
	spec, err := json.Marshal(map[string]any{
		"dir": dir, "commands": p.effective.Verify, "timeout_seconds": int(verifyTimeout.Seconds()),
		"max_calls": p.effective.Policy.Ladder.RunTestsCalls, "journal": filepath.Join(home, toolJournal),
	})
	if err != nil {
		return nil, err
	}
	// A continued session has the journal of the attempt before.
	if err := writeFiles(home, map[string]string{toolSpec: string(spec), toolJournal: ""}); err != nil {
		return nil, fmt.Errorf("prepare the test tool: %w", err)
	}
	return []string{s.Program, "mcp", "--spec", filepath.Join(home, toolSpec)}, nil
}

// ranTests takes the calls of the test tool over into the receipt.
func (s *step) ranTests(home string, r *Ended) {
	calls, err := readJournal(home)
	if err != nil {
		s.log.Info().Err(err).Msg("the test tool's journal was not read")
	}
	if len(calls) == 0 {
		return
	}
	rung := Rung{Rung: policy.RungTests, Times: len(calls), Recovered: calls[len(calls)-1].Passed,
		Trigger: "the agent asked for the tests", Response: "ran the verify commands during the attempt"}
	failed := 0
	for _, c := range calls {
		rung.MS += max(0, c.MS)
		if !c.Passed {
			failed++
		}
	}
	rung.Trigger = fmt.Sprintf("the agent ran the tests; %d of %d calls failed", failed, len(calls))
	r.Rungs = append(r.Rungs, rung)
}

// toolCall is a line of the journal.
type toolCall struct {
	Passed bool  `json:"passed"`
	MS     int64 `json:"ms"`
}

// readJournal reads what the agent left of the journal. It follows no link out
// of HOME and opens nothing but a regular file.
func readJournal(home string) ([]toolCall, error) {
	root, err := os.OpenRoot(home)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	f, err := root.OpenFile(toolJournal, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", toolJournal)
	}
	var calls []toolCall
	lines := bufio.NewScanner(io.LimitReader(f, maxJournal))
	for lines.Scan() {
		var c toolCall
		if json.Unmarshal(lines.Bytes(), &c) == nil {
			calls = append(calls, c)
		}
	}
	return calls, lines.Err()
}
