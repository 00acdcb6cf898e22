package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pawlSimulate runs the built binary and returns what it printed and its exit
// code.
func pawlSimulate(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), pawlBinary, append([]string{"simulate"}, args...)...)
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestSimulatePrintsOneObjectAndDraws(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "regret.svg")
	out, errs, code := pawlSimulate(t, "--attempts", "60", "--seeds", "4", "--arms", "2..3", "--json", "--svg", picture)
	var got struct {
		Attempts, Seeds int
		Cells           []struct {
			Scenario string
			Arms     int
			Saved    map[string]float64
		}
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitDone || errs != "" {
		t.Fatalf("exit code %d, error %v, %s%s", code, err, out, errs)
	}
	if got.Attempts != 60 || got.Seeds != 4 || len(got.Cells) != 8 || got.Cells[7].Arms != 3 || got.Cells[7].Saved["high"] == 0 {
		t.Errorf("%+v", got)
	}
	svg, err := os.ReadFile(picture)
	if err != nil || !strings.HasPrefix(string(svg), "<svg") {
		t.Errorf("%v: %.80s", err, svg)
	}
}

func TestSimulatePrintsATable(t *testing.T) {
	out, errs, code := pawlSimulate(t, "--attempts", "40", "--seeds", "2", "--arms", "2", "--scenario", "drifting")
	if code != exitDone || errs != "" || !strings.Contains(out, "drifting") || strings.Contains(out, "corrupted") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

func TestSimulateRefusesWrongFlags(t *testing.T) {
	for _, args := range [][]string{{"--arms", "5..2"}, {"--arms", "two"}, {"--arms", "1"}, {"--seeds", "0"}, {"--attempts", "-1"},
		{"--scenario", "stormy"}, {"extra"}, {"--arms", "2..999999999"}} {
		if out, errs, code := pawlSimulate(t, args...); code != exitUsage || errs == "" || out != "" {
			t.Errorf("%v: exit code %d: %s%s", args, code, out, errs)
		}
	}
}
