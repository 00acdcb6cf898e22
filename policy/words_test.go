package policy

import "testing"

func TestProgressIsAChangedTree(t *testing.T) {
	for _, tc := range []struct {
		start, end string
		want       bool
	}{
		{"a", "b", true},
		{"a", "a", false},
		{"", "b", false},
		{"a", "", false},
		{"", "", false},
	} {
		if got := (Receipt{StartTree: tc.start, EndTree: tc.end}).Progress(); got != tc.want {
			t.Errorf("from tree %q to %q: %t, want %t", tc.start, tc.end, got, tc.want)
		}
	}
}
