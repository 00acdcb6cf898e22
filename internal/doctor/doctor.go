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

// The states of a finding.
const (
	OK      = "ok"
	Warning = "warning"
	Failed  = "failed"
)

// Finding is what a check came to.
type Finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"` // what to do; empty where there is nothing to do
}

// Error is a finding of what does not work.
func (f Finding) Error() string { return f.Check + ": " + f.Text + " (" + f.Hint + ")" }

// Failures are the findings of what does not work.
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

// group says when a check is made.
type group int

const (
	local   group = iota // by pawl doctor only
	machine              // what an attempt begins with; a server does not start where one fails
	agents               // a server does not start where no backend works
	outside              // others, whose state may pass by itself, and what the configuration leaves open
)

// check is a row of the table.
type check struct {
	name  string
	group group
	needs func(*exam) bool // what must hold for the check to make sense; nil for nothing
	run   func(*exam, context.Context) []Finding
	slow  bool // it takes as long as it takes, instead of checkTime at most
}

// table holds the checks in the order in which they are made and printed. A finding without a name gets the check's.
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
	{name: "backend", group: agents, run: (*exam).backends, slow: true}, // each is bounded by itself
	{name: "clock", group: outside, run: (*exam).clock},
	{name: "github", group: outside, run: (*exam).github},
	{name: "permissions", group: outside, needs: (*exam).hasApp, run: (*exam).permissions},
	{name: "events", group: outside, needs: (*exam).hasApp, run: (*exam).events},
	{name: "permissions", group: outside, needs: (*exam).hasApp, run: (*exam).workflows},
	{name: "installed", group: outside, needs: (*exam).hasApp, run: (*exam).installed},
	{name: "hook", group: outside, needs: (*exam).hasApp, run: (*exam).hook},
	{name: "signing", group: outside, needs: (*exam).signs, run: (*exam).signing},
	{name: "provider", group: outside, run: (*exam).providers},
	{name: "policy", group: outside, run: (*exam).paused},
	{name: "budget", group: outside, run: (*exam).budget},
	{name: "repository", group: local, needs: (*exam).triesRepository, run: (*exam).repository, slow: true},
}

// checkTime bounds each check and each CLI's --version, which on a busy machine was seen to take more than a
// minute.
const checkTime = 2 * time.Minute

// exam is one server that is looked at.
type exam struct {
	cfg       config.Server
	build     web.Build
	file      string // the configuration's, absolute; set for the group local
	repo      string // OWNER/NAME, to be tried as well; empty for none
	transport http.RoundTripper
	box       *sandbox.Sandbox // nil where it does not work
	app       *signedIn        // nil before GitHub was asked
	// aheadOfDatabase is how far this machine's clock is ahead of the database's.
	aheadOfDatabase time.Duration
}

func newExam(cfg config.Server, build web.Build) *exam {
	server.ShowInstalled(&cfg)
	return &exam{cfg: cfg, build: build, transport: http.DefaultTransport}
}

func (e *exam) hasSandbox() bool { return e.box != nil }

func (e *exam) triesRepository() bool { return e.repo != "" && e.hasApp() }

// run makes the checks of some groups.
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

// findings are what a check came to, each in one line: some errors have several.
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

// Examine makes all checks of the server that a file configures, and of a repository unless that is empty. Without a
// readable configuration there is only one check.
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
			Hint:  "pawl setup writes a new one, config/example.yml shows every key",
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

// Print writes a line for each finding, and one for its hint.
func Print(w io.Writer, all []Finding) {
	for _, f := range all {
		fmt.Fprintf(w, "%-8s %-14s %s\n", f.State, f.Check, f.Text)
		if f.Hint != "" {
			fmt.Fprintf(w, "%-8s %-14s → %s\n", "", "", f.Hint)
		}
	}
}
