package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReplayTellsWrongUsageFromFailure(t *testing.T) {
	t.Parallel()
	text := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(text, []byte("nothing that an agent prints\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"replay"}, exitUsage, "needs a recording"},
		{[]string{"replay", "--cli", "telex", text}, exitUsage, "unknown --cli"},
		{[]string{"replay", "--sideways", text}, exitUsage, "unknown flag"},
		{[]string{"replay", text}, exitFailed, "no wrapper's log and no transcript"},
		{[]string{"replay", empty}, exitFailed, "it is empty"},
		{[]string{"replay", text + ".gone"}, exitFailed, "no such file"},
		{[]string{"replay", "../../testdata/trails/usage-limit-loop.log", "no-such-file"}, exitFailed, "no such file"},
		{[]string{"replay", "--cli", "plain", text}, exitDone, ""},
	} {
		var out, errs bytes.Buffer
		if code := run(tc.args, &out, &errs); code != tc.code || !strings.Contains(errs.String(), tc.says) {
			t.Errorf("%q: exit code %d, %q; want %d and %q", tc.args, code, errs.String(), tc.code, tc.says)
		}
	}
}
