package config

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestCostsPageNamesTheDefaults(t *testing.T) {
	page, err := os.ReadFile("../docs/costs.md")
	if err != nil {
		t.Fatal(err)
	}
	p, b := Default().Policy, NewBackend("codex", Codex)
	for _, want := range []string{
		fmt.Sprintf("at most %d attempts in a row", p.Unattended.MaxAttempts),
		fmt.Sprintf("| restarts since a user typed something new | %d |", p.Restarts.Max),
		fmt.Sprintf("| attempts per thread in 24 hours | %d |", p.Restarts.MaxPerThreadPerDay),
		fmt.Sprintf("| %d, %d, %d, %d | `policy.caps` |", p.Caps.PerRepositoryPerDay, p.Caps.PerInstallationPerDay, p.Caps.PerServerPerDay, p.Caps.PerAccountPerDay),
		fmt.Sprintf("| %.0f, %.0f, %.0f, %.0f | `policy.budget` |", p.Budget.USDPerRepositoryPerDay, p.Budget.USDPerInstallationPerDay, p.Budget.USDPerServerPerDay, p.Budget.USDPerAccountPerDay),
		fmt.Sprintf("| dollars and tokens per attempt | %s |", map[bool]string{true: "none"}[p.Budget.USDPerAttempt == 0 && p.Budget.TokensPerAttempt == 0]),
		fmt.Sprintf("| duration of an attempt | %.0f minutes |", b.Timeout.Minutes()),
		fmt.Sprintf("| silence of an agent | %.0f minutes |", b.IdleTimeout.Minutes()),
	} {
		if !strings.Contains(string(page), want) {
			t.Errorf("docs/costs.md lacks %q", want)
		}
	}
}
