package config

import (
	"strings"
	"testing"
)

// An acknowledged webhook must survive a restart.
func TestADatabaseInMemoryIsRefused(t *testing.T) {
	for _, text := range []string{"memory:", "memory:pawl", "sqlite::memory:", "sqlite:file:/pawl?vfs=memdb"} {
		var d Database
		if err := d.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "write sqlite:PATH") {
			t.Errorf("%s: %v, want an error that names sqlite:PATH", text, err)
		}
	}
}
