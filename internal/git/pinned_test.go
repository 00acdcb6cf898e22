package git

import (
	"strings"
	"testing"
)

func TestChangedReturnsHunksOfTheLines(t *testing.T) {
	origin, first := repository(t, map[string]string{"a.txt": "1\n2\n3\n4\n5\n6\n7\n8\n", "@@ -1 odd": "x\n", "gone.txt": "x\n"})
	write(t, origin, map[string]string{"a.txt": "1\n2\nthree\n4\n5\n5a\n6\n8\n"})
	sh(t, origin, "rm", "-q", "gone.txt")
	sh(t, origin, "commit", "-q", "-a", "-m", "second")
	second := sh(t, origin, "rev-parse", "HEAD")
	c := open(t)
	if _, err := c.Fetch(t.Context(), Remote{URL: origin}, "main"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		path        string
		first, last int
		want        string
	}{
		{"a.txt", 3, 3, "@@ -3 +3 @@\n-3\n+three\n"},
		{"a.txt", 1, 3, "@@ -3 +3 @@\n-3\n+three\n"},
		{"a.txt", 4, 4, ""},
		{"a.txt", 5, 5, "@@ -5,0 +6 @@\n+5a\n"}, // lines added after it
		{"a.txt", 6, 6, "@@ -5,0 +6 @@\n+5a\n"}, // lines added before it
		{"a.txt", 7, 9, "@@ -7 +7,0 @@\n-7\n"},
		{"gone.txt", 1, 1, "@@ -1 +0,0 @@\n-x\n"},
		{"@@ -1 odd", 1, 1, ""},
		{":(glob)*.txt", 1, 9, ""},
		{"none", 1, 1, ""},
	} {
		got, err := c.Changed(t.Context(), first, second, tc.path, tc.first, tc.last, 1000)
		if err != nil || got != tc.want {
			t.Errorf("%s:%d-%d: %q %v, want %q", tc.path, tc.first, tc.last, got, err, tc.want)
		}
	}
	for commit, want := range map[string]bool{first: true, second: true, strings.Repeat("1", 40): false} {
		if got, err := c.Holds(t.Context(), second, commit); got != want || err != nil {
			t.Errorf("the history of %s contains %s: %v %v, want %v", second, commit, got, err, want)
		}
	}
	if got, err := c.Holds(t.Context(), first, second); got || err != nil {
		t.Errorf("a commit contains its child: %v %v", got, err)
	}
}
