package local

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
)

func TestRunsHaveSeparateFoldersThatAreKeptWhileInUse(t *testing.T) {
	t.Parallel()
	cache, now := filepath.Join(t.TempDir(), "pawl"), time.Date(2026, 3, 4, 14, 3, 0, 0, time.UTC)
	var dirs []string
	for i := range runsKept + 3 {
		if i == runsKept {
			now = now.Add(time.Second)
		}
		dir, err := NewRun(t.Context(), cache, now)
		if err != nil || slices.Contains(dirs, dir) {
			t.Fatalf("run %d: %s, %v", i, dir, err)
		}
		dirs = append(dirs, dir)
		if i == 0 {
			db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, Database), store.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
		}
	}
	left, err := filepath.Glob(filepath.Join(cache, "*"))
	if err != nil || len(left) != runsKept+2 || left[0] != dirs[0] || !slices.Contains(left, dirs[len(dirs)-1]) {
		t.Errorf("%v, %v: left of %v", left, err, dirs)
	}
}

// The key comes from the usual variable of a provider that the CLI can speak with.
func TestStandaloneConfigurationFromTheEnvironment(t *testing.T) {
	bin := t.TempDir()
	for _, kind := range config.CLIs() {
		program(t, filepath.Join(bin, kind))
	}
	t.Setenv("PATH", bin)
	for _, c := range []struct {
		kind, model string
		env         map[string]string
		want        []string // protocol, URL, key and model
		fails       string
	}{
		{kind: "codex", env: map[string]string{"OPENAI_API_KEY": "k"}, want: []string{"openai", "https://api.openai.com/v1", "k", ""}},
		{
			kind: "codex", model: "other",
			env:  map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://127.0.0.1:1/v1/"},
			want: []string{"openai", "http://127.0.0.1:1/v1", "k", "other"},
		},
		{kind: "codex", env: map[string]string{"ANTHROPIC_API_KEY": "k"}, fails: "backend codex needs a key: set OPENAI_API_KEY"},
		{kind: "telex", fails: `backend "telex" needs a configuration file that describes it`},
		{kind: config.Command, fails: `backend "command" needs a configuration file that describes it`},
	} {
		var cfg config.Server
		err := Standalone(&cfg, c.kind, c.model, func(name string) (string, bool) { v, ok := c.env[name]; return v, ok })
		if c.fails != "" {
			if err == nil || !strings.HasPrefix(err.Error(), c.fails) {
				t.Errorf("%s with %v: %v, want %s", c.kind, c.env, err, c.fails)
			}
			continue
		}
		if err != nil || len(cfg.Providers) != 1 || len(cfg.Backends) != 1 || cfg.Backends[0].Provider != cfg.Providers[0].Name {
			t.Fatalf("%s with %v: %v, providers %+v, backends %+v", c.kind, c.env, err, cfg.Providers, cfg.Backends)
		}
		p := cfg.Providers[0]
		if diff := cmp.Diff(c.want, []string{p.Protocol, p.BaseURL, p.Key.Reveal(), cfg.Backends[0].Model}); diff != "" {
			t.Errorf("%s with %v: %s", c.kind, c.env, diff)
		}
	}
	t.Setenv("PATH", t.TempDir())
	err := Standalone(&config.Server{}, "codex", "", func(string) (string, bool) { return "k", true })
	if err == nil || !strings.Contains(err.Error(), "npm install --global @openai/codex@") {
		t.Errorf("without the program: %v", err)
	}
}

func program(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
}
