package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// At a terminal a command tells of a large file how far it is read, in one line that is gone at its end.
func TestALargeFileTellsHowFarItIsRead(t *testing.T) {
	t.Parallel()
	for size, told := range map[int64]bool{slowRead: true, slowRead - 1: false} {
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
		var said strings.Builder
		r := withProgress(f, &said)
		n, err := io.Copy(io.Discard, struct{ io.Reader }{r})
		if n != size || err != nil {
			t.Errorf("%d of %d bytes: %v", n, size, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if got := said.String(); strings.Contains(got, " of 16 MiB read") != told || strings.HasSuffix(got, lineBegin) != told {
			t.Errorf("%d bytes: %q", size, got)
		}
	}
}
