package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// nested returns one line of YAML that sets a key, such as a.b[].c.
func nested(key, value string) string {
	first, rest, more := strings.Cut(key, ".")
	if more {
		value = "{" + nested(rest, value) + "}"
	}
	if name, ok := strings.CutSuffix(first, "[]"); ok {
		return name + ": [" + value + "]"
	}
	return first + ": " + value
}

func TestRemovedKeysNameTheirReplacement(t *testing.T) {
	for key, instead := range removed {
		key, value, _ := strings.Cut(key, ": ")
		if value == "" {
			value = "1"
		}
		file := filepath.Join(t.TempDir(), "pawl.yml")
		if err := os.WriteFile(file, []byte(nested(key, value)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(file, testEnv)
		problems, _ := err.(Problems)
		found := false
		for _, p := range problems {
			found = found || anyIndex.ReplaceAllString(p.Key, "[]") == key && p.Message == instead
		}
		if !found {
			t.Errorf("%s: %v; want the problem %q", key, err, instead)
		}
	}
}
