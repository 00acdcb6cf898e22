package attempt

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// An agent may print its key, name a test after it, or pass it to a call.
func TestReceiptShowsNoKey(t *testing.T) {
	const key = "key-0123456789abcdef"
	a := &Attempt{Config: &config.Server{}, Env: &Env{Lookup: func(string) (string, bool) { return key, true }}, Ground: &Ground{}}
	a.Backend = "x"
	a.Ground.Effective.Backends = []config.Backend{{Name: "x", Env: []string{"KEY"}}}
	a.Receipt.Verify = []policy.Verified{{
		Output: key, Broken: "the build is broken, " + key, Known: []string{"Test" + key}, Flaky: []string{"Test" + key}, Fixed: []string{"Test" + key},
		Failing: []policy.Failing{{Name: "Test" + key, Text: key}},
	}}
	a.Receipt.Edits.SameCall = "curl -u " + key
	a.Hide()
	encoded, err := json.Marshal(a.Receipt)
	if err != nil || strings.Contains(string(encoded), key) {
		t.Errorf("%s shows the key, %v", encoded, err)
	}
}
