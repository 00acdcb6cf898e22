package doctor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/web"
)

// States of a finding.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "failed"
)

// Finding is a check's result.
type Finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"` // what to do, or empty
}

// Error implements error.
func (f Finding) Error() string { return f.Check + ": " + f.Text + " (" + f.Hint + ")" }

// Failures selects the failures.
func Failures(all []Finding) []Finding {
	return slices.DeleteFunc(slices.Clone(all), func(f Finding) bool { return f.State != Failed })
}

func ok(text string) []Finding { return []Finding{{State: OK, Text: text}} }

func warning(text, hint string) []Finding {
	return []Finding{{State: Warning, Text: text, Hint: hint}}
}

func failed(text, hint string) []Finding {
	return []Finding{{State: Failed, Text: text, Hint: hint}}
}

type group int

const (
	local   group = iota // only pawl doctor
	machine              // an attempt's needs; a failure prevents the start
	agents               // backends; a start needs one that works
	outside              // other systems and settings; a start checks them later
)

type check struct {
	name  string
	group group
	needs func(*exam) bool // precondition, or nil
	run   func(*exam, context.Context) []Finding
	slow  bool // not limited by checkTime
}

// table lists the checks in order. A finding without a name gets the check's.
var table = []check{
	{name: "server", group: local, run: (*exam).servers},
	{name: "database", group: local, run: (*exam).database},
	{name: "git", group: machine, run: (*exam).git},
	{name: "data_dir", group: machine, run: (*exam).dataDir},
	{name: "disk", group: machine, run: (*exam).disk},
	{name: "secrets", group: local, run: (*exam).secrets},
	{name: "port", group: local, run: (*exam).ports},
	{name: "sandbox", group: machine, run: (*exam).sandbox},
	{name: "limits", group: machine, needs: (*exam).hasSandbox, run: (*exam).limits},
	{name: "limits", group: machine, run: (*exam).room},
	{name: "sandbox", group: machine, run: (*exam).readOnly},
	{name: "backend", group: agents, run: (*exam).backends, slow: true}, // each CLI has its own limit
	{name: "clock", group: outside, run: (*exam).clock},
	{name: "github", group: outside, run: (*exam).github},
	{name: "permissions", group: outside, needs: (*exam).hasApp, run: (*exam).permissions},
	{name: "events", group: outside, needs: (*exam).hasApp, run: (*exam).events},
	{name: "permissions", group: outside, needs: (*exam).hasApp, run: (*exam).workflows},
	{name: "installed", group: outside, needs: (*exam).hasApp, run: (*exam).installed},
	{name: "hook", group: outside, needs: (*exam).hasApp, run: (*exam).hook},
	{name: "sandbox", group: outside, needs: (*exam).inPod, run: (*exam).podNetwork},
	{name: "signing", group: outside, needs: (*exam).signs, run: (*exam).signing},
	{name: "provider", group: outside, run: (*exam).providers},
	{name: "policy", group: outside, run: (*exam).paused},
	{name: "budget", group: outside, run: (*exam).budget},
	{name: "repository", group: local, needs: (*exam).triesRepository, run: (*exam).repository, slow: true},
}

// checkTime limits each check and each CLI's --version, which may take over a minute on a busy machine.
const checkTime = 2 * time.Minute

// exam examines one server.
type exam struct {
	cfg       config.Server
	build     web.Build
	file      string // absolute path; set for the group local
	repo      string // OWNER/NAME to try, or empty
	transport http.RoundTripper
	box       *sandbox.Sandbox // nil if it does not work
	app       *signedIn        // nil before GitHub was asked
	// aheadOfDatabase is this machine's clock minus the database's.
	aheadOfDatabase time.Duration
}

func newExam(cfg config.Server, build web.Build) *exam {
	server.ShowInstalled(&cfg)
	return &exam{cfg: cfg, build: build, transport: http.DefaultTransport}
}

func (e *exam) hasSandbox() bool { return e.box != nil }

func (e *exam) triesRepository() bool { return e.repo != "" && e.hasApp() }

func (e *exam) run(ctx context.Context, groups ...group) []Finding {
	var all []Finding
	for _, c := range table {
		if !slices.Contains(groups, c.group) {
			continue
		}
		if c.needs != nil && !c.needs(e) {
			continue
		}
		all = append(all, c.findings(ctx, e)...)
	}
	return all
}

func (c check) findings(ctx context.Context, e *exam) []Finding {
	if !c.slow {
		bounded, cancel := context.WithTimeout(ctx, checkTime)
		defer cancel()
		ctx = bounded
	}
	found := c.run(e, ctx)
	for i, f := range found {
		if f.Check == "" {
			found[i].Check = c.name
		}
		found[i].Text = strings.Join(strings.Fields(f.Text), " ")
	}
	return found
}

// Examine runs all checks of the server that file configures, and of repo unless it is empty. If the configuration is
// unreadable, Examine reports only that.
func Examine(ctx context.Context, file, repo string, build web.Build) []Finding {
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		return unreadable(err)
	}
	e := newExam(cfg, build)
	e.repo = repo
	e.file, err = filepath.Abs(file)
	if err != nil {
		return unreadable(err)
	}
	complete := Finding{Check: "configuration", State: OK, Text: file + " is complete"}
	return append([]Finding{complete}, e.run(ctx, local, machine, agents, outside)...)
}

func unreadable(err error) []Finding {
	problems, ok := errors.AsType[config.Problems](err)
	if !ok {
		return []Finding{{
			Check: "configuration",
			State: Failed,
			Text:  err.Error(),
			Hint:  "pawl setup writes a new one; config/example.yml shows every key",
		}}
	}
	var found []Finding
	for _, p := range problems {
		found = append(found, Finding{
			Check: "configuration",
			State: Failed,
			Text:  p.String(),
			Hint:  "correct it; docs/configuration.md has every key",
		})
	}
	return found
}

// Print writes a line per finding and hint.
func Print(w io.Writer, all []Finding) {
	for _, f := range all {
		fmt.Fprintf(w, "%-8s %-14s %s\n", f.State, f.Check, f.Text)
		if f.Hint != "" {
			fmt.Fprintf(w, "%-8s %-14s → %s\n", "", "", f.Hint)
		}
	}
}
