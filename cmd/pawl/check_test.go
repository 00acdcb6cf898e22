package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckReadsARepositorysFile(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, file string
		server     bool
		code       int
		want       string
	}{
		{"well", "verify: [go test ./...]\n", false, exitDone, "pawl.yml: no error"},
		{"empty", "", true, exitDone, "pawl.yml: no error"},
		{"two errors", "verify: 3\nwrong: 1\n", false, exitFailed, "pawl.yml:2:1: wrong: is not a known key"},
		{"a backend that the server lacks", "backends: [gemini]\n", true, exitFailed, "pawl.yml:1:12: backends[0]"},
		{"the same without the server", "backends: [gemini]\n", false, exitDone, "no error"},
		{"a control character", "verify: [\"a\\u001b[2J\"]\nw\x1b[2J: 1\n", false, exitFailed, "pawl.yml:"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file, server := filepath.Join(dir, "pawl.yml"), filepath.Join(dir, "server.yml")
			write(t, file, tc.file)
			write(t, filepath.Join(dir, "app.pem"), "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n")
			write(t, server, "github: {app: {integration_id: 1, webhook_secret: 0123456789abcdef, private_key_file: app.pem}}\nbackends: [{name: codex, kind: codex}]\n")
			args := []string{"check", file}
			if tc.server {
				args = append(args, "--config", server)
			}
			var out, errs strings.Builder
			if code := run(args, &out, &errs); code != tc.code {
				t.Errorf("exit %d, want %d", code, tc.code)
			}
			if all := out.String() + errs.String(); !strings.Contains(all, tc.want) || strings.Contains(all, "\x1b") {
				t.Errorf("it says %q, without %q", all, tc.want)
			}
		})
	}
	var out, errs strings.Builder
	if code := run([]string{"check", filepath.Join(t.TempDir(), "none.yml")}, &out, &errs); code != exitFailed || !strings.Contains(errs.String(), "there is no such file") {
		t.Errorf("exit %d for a missing file: %s", code, errs.String())
	}
}

func TestVersionAndCompletion(t *testing.T) {
	t.Parallel()
	for arg, want := range map[string]string{"--version": "pawl ", "completion bash": "bash completion", "completion zsh": "#compdef pawl", "completion fish": "fish completion"} {
		var out, errs strings.Builder
		if code := run(strings.Fields(arg), &out, &errs); code != exitDone || !strings.Contains(out.String(), want) {
			t.Errorf("pawl %s: exit %d: %.200s%s", arg, code, out.String(), errs.String())
		}
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
