package learning

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
)

func TestTasksHaveACategory(t *testing.T) {
	for _, c := range []struct {
		task Task
		want policy.Category
	}{
		{Task{Labels: []string{"bug"}, Title: "Add a feature"}, policy.Bug},
		{Task{Labels: []string{"good first issue", "kind/enhancement"}}, policy.Feature},
		{Task{Labels: []string{"pawl"}, Title: "Crash when the list is empty"}, policy.Bug},
		{Task{Labels: []string{"area: docs"}, Paths: []string{"a.go"}}, policy.Docs},
		{Task{Title: "Improve this", Paths: []string{"README.md", "docs/use.md"}}, policy.Docs},
		{Task{Title: "Improve this", Paths: []string{"go.mod", "go.sum"}}, policy.Dependency},
		{Task{Title: "Improve this", Paths: []string{"a/b_test.go", "src/x.spec.ts", "tests/y.py"}}, policy.Test},
		{Task{Title: "Improve this", Paths: []string{".github/workflows/ci.yml", "Makefile"}}, policy.Chore},
		{Task{Title: "Fix it", Paths: []string{"a.go", "a_test.go"}}, policy.Bug},
		{Task{Title: "Fix a typo in the README"}, policy.Docs},
		{Task{Title: "Bump x from 1 to 2"}, policy.Dependency},
		{Task{Title: "Refactor the parser"}, policy.Refactor},
		{Task{Title: "Document the port"}, policy.Docs},
		{Task{Title: "Support TOML"}, policy.Feature},
		{Task{Title: "Hm"}, policy.Other},
		{Task{}, policy.Other},
	} {
		if got := c.task.Context().Category; got != c.want {
			t.Errorf("%+v is %s, want %s", c.task, got, c.want)
		}
	}
}

func TestTasksHaveASize(t *testing.T) {
	for _, c := range []struct {
		text int
		want policy.Size
	}{{0, policy.Small}, {500, policy.Small}, {501, policy.Medium}, {3000, policy.Medium}, {3001, policy.Large}} {
		if got := (Task{Body: strings.Repeat("x", c.text)}).Context().Size; got != c.want {
			t.Errorf("text %d: %s, want %s", c.text, got, c.want)
		}
	}
}

func TestRepositoryNamesIgnoreCase(t *testing.T) {
	if a, b := (Task{Repo: "Octo/Repo"}).Context(), (Task{Repo: "octo/repo"}).Context(); a != b {
		t.Errorf("%v and %v", a, b)
	}
}

func TestMentionedPaths(t *testing.T) {
	got := MentionedPaths("See `policy/admit.go:42`, (README.md) and go.mod. Not https://x.org/a.go, e.g. v1.2.3, 3.14, .env or end.")
	if diff := cmp.Diff([]string{"policy/admit.go", "README.md", "go.mod"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		if n := len(MentionedPaths(rapid.String().Draw(t, "text"))); n > maxMentioned {
			t.Fatalf("%d paths", n)
		}
	})
}
