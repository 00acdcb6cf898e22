package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// TestABrokenTestToolDoesNotBreakARun damages the tool's configuration before each CLI starts the tool, so that the tool
// exits at once.
func TestABrokenTestToolDoesNotBreakARun(t *testing.T) {
	t.Parallel()
	modules(t)
	for _, cli := range realCLIs() {
		t.Run(cli.kind, func(t *testing.T) {
			t.Parallel()
			s := newCLIRig(t, cli, "edit-success")
			s.write("wrap.sh", "#!/bin/sh\nls \"$HOME/.pawl/tests.json\" || exit 9\necho broken > \"$HOME/.pawl/tests.json\"\nexec "+cli.kind+" \"$@\"\n")
			wrap := filepath.Join(s.dir, "wrap.sh")
			if err := os.Chmod(wrap, 0o700); err != nil {
				t.Fatal(err)
			}
			s.backend = fmt.Sprintf("argv: [%q]", wrap)
			r := s.run("--verify", "test -f hello.txt")
			if last := r.Attempts[0]; r.State != "done" || len(r.Attempts) != 1 || rungOf(last.Receipt, policy.RungTests).Times != 0 {
				t.Errorf("%s (%s %q) after %d attempts, rungs %+v; want done after one attempt without the tool", r.State, r.Rule, r.Reasons, len(r.Attempts), last.Rungs)
			}
			s.greets(r)
		})
	}
}

// TestDoctorNamesTheVersionsOfRealAgents runs pawl doctor on a server with all CLIs and the fake provider.
func TestDoctorNamesTheVersionsOfRealAgents(t *testing.T) {
	t.Parallel()
	dir := modules(t)
	r := newRig(t, nil)
	providers, backends := "providers:\n", "backends:\n"
	var s *cliRig
	for _, cli := range realCLIs() {
		s = newCLIRig(t, cli, "edit-success")
		providers += fmt.Sprintf("  - {name: %s, protocol: %s, base_url: %q, key: %q}\n", cli.kind, cli.protocol, s.provider.URL("edit-success"), testrig.ProviderKey)
		backends += fmt.Sprintf("  - {name: %s, kind: %[1]s, model: %s, provider: %[1]s}\n", cli.kind, cli.model)
	}
	r.Config = fmt.Sprintf("sandbox: {mode: %s, read_only: [%q]}\n%s%s", s.mode, dir, providers, backends)
	_, out, stderr := pawl(t, r.Dir, []string{"HOME=" + s.home(), s.path()}, "doctor", "--config", r.File())
	for _, cli := range realCLIs() {
		var shown string
		for line := range strings.Lines(out) {
			if strings.Contains(line, "backend "+cli.kind) {
				shown += line
			}
		}
		if !strings.Contains(shown, cli.version) || strings.Contains(shown, "failed") || !strings.Contains(shown, "does not get the key") {
			t.Errorf("pawl doctor prints about %s:\n%s", cli.kind, shown)
		}
		if !strings.Contains(out, "provider "+cli.kind) {
			t.Errorf("the provider of %s is not checked", cli.kind)
		}
	}
	if strings.Contains(out+stderr, testrig.ProviderKey) || t.Failed() {
		t.Errorf("pawl doctor:\n%s%s", out, stderr)
	}
}
