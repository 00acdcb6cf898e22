package config

import (
	"strings"
	"testing"
)

// An answered webhook must be durable, and memory is not.
func TestADatabaseInMemoryIsRefused(t *testing.T) {
	for _, text := range []string{"memory:", "memory:pawl", "sqlite::memory:", "sqlite:file:/pawl?vfs=memdb"} {
		var d Database
		if err := d.UnmarshalText([]byte(text)); err == nil || !strings.Contains(err.Error(), "write sqlite:PATH") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
