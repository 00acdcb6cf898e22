package doctor

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/web"
)

// configuration loads the configuration as a server does.
func (c *clinic) configuration() config.Server {
	c.Helper()
	c.write("pawl.yml", c.text)
	cfg, err := config.Load(c.path("pawl.yml"), os.LookupEnv)
	c.must(err)
	return cfg
}

func TestStartFailsIfNoAttemptCouldWork(t *testing.T) {
	for name, row := range map[string]struct {
		edit  func(*clinic)
		words []string
	}{
		"an old git": {func(c *clinic) {
			c.only("sh", "cat")
			c.prints("bin/git", "git version 2.37.7", 0)
		}, []string{"git version 2.37.7 is too old", "install git 2.38 or newer"}},
		"the only agent is missing": {func(c *clinic) { c.replace(c.path("mine"), "/none/codex") },
			[]string{"no backend can work", "npm install --global @openai/codex@"}},
		"the only agent does not start": {func(c *clinic) { c.prints("mine", "no", 3) },
			[]string{"no backend can work", "exit status 3"}},
		"the only agent has no login": {func(c *clinic) {
			c.only("sh", "cat", "git")
			c.prints("bin/codex", "codex-cli 0.169.0", 0)
			c.replace(`, argv: ["`+c.path("mine")+`"]`, "")
		}, []string{"no backend can work", "has no way to sign in", "name a provider"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t, nil)
			row.edit(c)
			cfg := c.configuration()
			_, err := AtStart(web.Build{})(t.Context(), &cfg, zerolog.Nop())
			for _, words := range row.words {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("the error %v does not say %q", err, words)
				}
			}
		})
	}
}

// Problems of one of two backends, and of other systems, are logged and do not stop the server.
func TestStartWarnsOfOtherProblems(t *testing.T) {
	c := newClinic(t, func(o *fakegithub.Options) {
		o.Permissions = setup.AppPermissions()
		o.Permissions["workflows"] = "write"
	})
	c.text += "  - {name: gone, kind: codex, argv: [/none/codex]}\n"
	var log strings.Builder
	s := &start{exam: newExam(c.configuration(), web.Build{}), log: zerolog.New(&log), agents: make(chan []Finding, 1)}
	c.must(s.machine(t.Context()))
	c.must(s.backends(t.Context()))
	s.outside(t.Context())
	for _, words := range []string{
		"/none/codex", "npm install --global @openai/codex@", `"check":"backend gone"`,
		"sandbox.mode is none: agents can read and write", "the App has the permission workflows",
	} {
		if !strings.Contains(log.String(), words) {
			t.Errorf("the log has no %q:\n%s", words, &log)
		}
	}
}

// An App unknown to GitHub is reported at once. An unreachable GitHub is not, since the configuration may be right.
func TestStartReportsARefusedAppAtOnce(t *testing.T) {
	for name, row := range map[string]struct {
		edit  func(*clinic)
		words string // empty if nothing is logged
	}{
		"another id":               {func(c *clinic) { c.replace("integration_id: 1", "integration_id: 99") }, "github.app.integration_id is 99"},
		"no server at the address": {func(c *clinic) { c.must(c.github.Close()) }, ""},
		"no problem":               {func(*clinic) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := newClinic(t, nil)
			row.edit(c)
			var log strings.Builder
			s := &start{exam: newExam(c.configuration(), web.Build{}), log: zerolog.New(&log)}
			s.refused(t.Context())
			if !strings.Contains(log.String(), row.words) || (log.Len() > 0) != (row.words != "") {
				t.Errorf("the log does not contain exactly %q:\n%s", row.words, &log)
			}
		})
	}
}

// A running server checks other systems.
func TestServerRunsTheLaterChecks(t *testing.T) {
	c := newClinic(t, nil)
	c.text += "server: {address: \"127.0.0.1:0\", pages: \"127.0.0.1:0\"}\n"
	looked := make(chan struct{})
	node := server.New(c.configuration(), server.Deps{
		Now: time.Now,
		Log: zerolog.Nop(),
		Check: func(context.Context, *config.Server, zerolog.Logger) (func(context.Context), error) {
			return func(context.Context) { close(looked) }, nil
		},
	})
	ctx, cancel := context.WithCancel(t.Context())
	served, err := node.Start(ctx)
	c.must(err)
	<-looked
	cancel()
	c.must(<-served)
}
