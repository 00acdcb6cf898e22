package testreport

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// labels are the prefixes that tools print; n is the line's number.
var labels = map[string]func(n int) string{
	"turbo":           func(int) string { return "api:test: " },
	"turbo, scoped":   func(int) string { return "@acme/api:test: " },
	"pnpm -r":         func(int) string { return "packages/api test: " },
	"pnpm --parallel": func(int) string { return "packages/api test:unit: " },
	"lerna":           func(int) string { return "@acme/api: " },
	"docker compose":  func(int) string { return "web-1  | " },
	"moon":            func(int) string { return "api:test | " },
	"concurrently":    func(int) string { return "[0] " },
	"yarn workspaces": func(int) string { return "[@acme/api]: " },
	"an unknown tool": func(int) string { return "(api) " },
	"parallel --tag":  func(int) string { return "api\t" },
	"Maven":           func(n int) string { return []string{"[INFO] ", "[ERROR] "}[n%2] },
	"GitHub Actions":  func(n int) string { return fmt.Sprintf("2026-08-12T10:00:%02d.%07dZ ", n/10%60, n) },
	"GitLab":          func(n int) string { return fmt.Sprintf("2026-08-12T10:00:%02d.%06dZ 01O ", n/10%60, n) },
	"Jenkins":         func(n int) string { return fmt.Sprintf("[2026-08-12T10:00:%02d.%03dZ] ", n/10%60, n%1000) },
	"ts":              func(n int) string { return fmt.Sprintf("10:00:%02d ", n/10%60) },
	"steps":           func(n int) string { return fmt.Sprintf("[%d/999] ", n) },
	"docker build":    func(n int) string { return fmt.Sprintf("#12 %d.%03d ", n/10, n) },
	"coloured turbo":  func(int) string { return "\x1b[35mapi:test: \x1b[0m" },
	"gh run view --log": func(n int) string {
		return fmt.Sprintf("build\tRun tests\t2026-08-12T10:00:%02d.%07dZ ", n/10%60, n)
	},
	"compose, with turbo in it": func(int) string { return "web-1  | api:test: " },
}

func prefixed(output string, label func(n int) string) string {
	lines := strings.Split(strings.TrimSuffix(output, "\n"), "\n")
	for i, line := range lines {
		lines[i] = label(i) + line
	}
	return strings.Join(lines, "\n") + "\n"
}

func numbersOf(r Report) string {
	return fmt.Sprintf("%s: %d passed, %d failed, %d skipped, %d named, %d ran", r.Runner, r.Passed, r.Failed, r.Skipped, len(r.Failures), len(r.Ran))
}

func TestLinePrefixesAreIgnored(t *testing.T) {
	for tool, label := range labels {
		for path, output := range recordings(t) {
			lines := strings.Count(output, "\n")
			if lines < minLane {
				continue
			}
			want, got := numbersOf(Read(output)), numbersOf(Read(prefixed(output, label)))
			if got != want {
				t.Errorf("%s behind the label of %s is read as %s, want %s", filepath.Base(path), tool, got, want)
			}
		}
		for name, output := range written(t, "runners.txt") {
			if strings.Count(output, "\n") < minLane {
				continue
			}
			if want, got := shown(Read(output)), shown(Read(prefixed(output, label))); got != want {
				t.Errorf("%s behind the label of %s is read as %s, want %s", name, tool, got, want)
			}
		}
		for name, output := range written(t, "others.txt") {
			if r := Read(prefixed(output, label)); r.Runner != "" {
				t.Errorf("%s behind the label of %s is read as %s", name, tool, shown(r))
			}
		}
	}
}

func TestMixedPackageLinesAreSeparated(t *testing.T) {
	all := recordings(t)
	api := strings.Split(prefixed(all["testdata/jest.txt"], labels["turbo"]), "\n")
	web := strings.Split(prefixed(all["testdata/pytest.txt"], func(int) string { return "web:test: " }), "\n")
	mixed := "• Running test in 2 packages\n"
	for i := range max(len(api), len(web)) {
		for _, lines := range [][]string{api, web} {
			if i < len(lines) {
				mixed += lines[i] + "\n"
			}
		}
	}
	r := Read(mixed + "\n Tasks:    0 successful, 2 total\n")
	j, p := Read(all["testdata/jest.txt"]), Read(all["testdata/pytest.txt"])
	want := together([]Report{j.named("api:test "), p.named("web:test ")})
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-each alone +mixed)\n%s", diff)
	}
}

func TestRareLabelIsIgnored(t *testing.T) {
	var log strings.Builder
	for i := range 40 {
		fmt.Fprintf(&log, "a line of a server's log, number %d\nand another one\n", i)
		if i%10 == 0 {
			log.WriteString("worker: 3 passed, 1 failed\n")
		}
	}
	if r := Read(log.String()); r.Runner != "" {
		t.Errorf("read as %s", shown(r))
	}
}
