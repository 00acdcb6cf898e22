package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

func TestAReportAndAnErrorCannotDriveATerminal(t *testing.T) {
	hostile := "the judge said \x1b]0;owned\x07\x1b[2J\u202egnorw"
	var out strings.Builder
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	err := printReport(cmd, nil, func(w io.Writer) {
		fmt.Fprintln(w, hostile)
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), hostile)
	var said strings.Builder
	if code := run([]string{"inspect", file}, io.Discard, &said); code != exitFailed {
		t.Errorf("exit code %d, want %d", code, exitFailed)
	}
	for _, s := range []string{out.String(), said.String()} {
		if strings.ContainsAny(s, "\x1b\x07\u202e") || !strings.Contains(s, "the judge said") {
			t.Errorf("%q", s)
		}
	}
}
