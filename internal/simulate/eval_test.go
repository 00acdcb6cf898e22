//go:build eval

package simulate

import (
	"strings"
	"testing"
)

// TestEvalLearning is pawl simulate with its defaults, and holds it against the
// aims.
func TestEvalLearning(t *testing.T) {
	r := ran(t, Options{Attempts: 500, Arms: []int{2, 3, 4, 5}, Seeds: 200, Scenarios: Scenarios()})
	var text strings.Builder
	if err := r.Text(&text); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + text.String())
	for _, missed := range r.Missed() {
		t.Error(missed)
	}
}
