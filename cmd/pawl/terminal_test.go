package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// At a terminal a command shows how much of a large file it has read. It clears this line at the end.
func TestLargeFileShowsReadProgress(t *testing.T) {
	t.Parallel()
	for size, shows := range map[int64]bool{slowRead: true, slowRead - 1: false} {
		name := filepath.Join(t.TempDir(), "session.jsonl")
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(name, size); err != nil {
			t.Fatal(err)
		}
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		var output strings.Builder
		r := withProgress(f, &output)
		n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
		if n != size || err != nil {
			t.Errorf("%d of %d bytes: %v", n, size, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got := output.String(); strings.Contains(got, " of 16 MiB read") != shows || strings.HasSuffix(got, lineBegin) != shows {
			t.Errorf("%d bytes: %q", size, got)
		}
	}
}
