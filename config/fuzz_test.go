package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse checks that no file makes Parse panic, every problem has a position, and no error shows a variable's value.
func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/*.yml")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range append(files, "example.yml", "repo-example.yml") {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(strings.Repeat("[", 60_000)))
	f.Add([]byte(strings.Repeat("a: &a [*a, ", 50)))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Parse("pawl.yml", data, testEnv, true); err != nil {
			var problems Problems
			if !errors.As(err, &problems) {
				t.Fatalf("error without a position: %v", err)
			}
			located(t, data, problems)
			for _, secret := range []string{"hunter2", "swordfish"} {
				if strings.Contains(err.Error(), secret) && !strings.Contains(string(data), secret) {
					t.Errorf("the error shows a variable's value: %v", err)
				}
			}
		}
		r, problems := ParseRepo(RepoFile, data)
		located(t, data, problems)
		_, problems = server("codex").Narrow(r)
		located(t, data, problems)
	})
}

func located(t *testing.T, data []byte, problems []Problem) {
	t.Helper()
	lines := strings.Count(strings.ReplaceAll(string(data), "\r", "\n"), "\n") + 2
	for _, p := range problems {
		if p.File == "" || p.Line < 1 || p.Message == "" || strings.ContainsAny(p.String(), "\n\r") {
			t.Errorf("problem without a position, or with several lines: %#v", p)
		}
		// NEL, LS and PS are line breaks in YAML as well.
		if p.Line > lines+strings.Count(string(data), "\u0085")+strings.Count(string(data), "\u2028")+strings.Count(string(data), "\u2029") {
			t.Errorf("line %d of a file of %d lines: %v", p.Line, lines, p)
		}
	}
}
