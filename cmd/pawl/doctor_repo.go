package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// shownTests is how many failing tests doctor names.
const shownTests = 5

// repository tries what comes before a first attempt on a repository: its file, its image, its setup and its verify
// commands on the default branch. All of it is done in a folder that is removed afterwards, and without what a server
// keeps, so that a cold machine is tried.
func (d *doctor) repository(ctx context.Context, client *forge.Client, fullName string) {
	const check = "repository"
	owner, name, _ := strings.Cut(fullName, "/")
	repo := forge.Repo{Owner: owner, Name: name}
	var err error
	if repo.Installation, err = client.Apps.Installation(ctx, repo); d.failed(check, err, "install the App on "+fullName+", or correct the name") {
		return
	}
	info, err := client.Repositories.Get(ctx, repo)
	if d.failed(check, err, "install the App on "+fullName+", or correct the name") {
		return
	}
	repo.ID = info.ID
	dir, err := os.MkdirTemp("", "pawl-doctor-")
	if d.failed(check, err, "let TMPDIR name a folder that this user can write to") {
		return
	}
	defer git.Remove(dir) // build tools leave folders that cannot be written to
	s, closing, err := d.trial(ctx, client, dir)
	if d.failed(check, err, "correct what the lines above name") {
		return
	}
	defer closing()
	began := time.Now()
	g, refused, err := s.Try(ctx, repo)
	if d.failed(check, err, "look whether this machine reaches GitHub, and at the disk below "+dir) {
		return
	}
	d.tell(repo, g, refused, time.Since(began))
}

// trial is a solver of its own, in a folder.
func (d *doctor) trial(ctx context.Context, client *forge.Client, dir string) (_ *solver.Solver, closing func(), err error) {
	cfg := d.cfg
	cfg.DataDir = dir
	box, err := server.OpenSandbox(ctx, cfg.Sandbox, "")
	if err != nil {
		return nil, nil, err
	}
	db, err := store.Open(ctx, "sqlite:"+dir+"/pawl.db", store.Options{})
	if err != nil {
		return nil, nil, err
	}
	s := &solver.Solver{
		Env:  attempt.Env{Store: db, Config: cfg, Sandbox: box, Node: server.NodeName(), Now: time.Now, Log: zerolog.Nop(), Lookup: os.LookupEnv},
		Host: solver.GitHub{Forge: client},
	}
	s.UseLayers(attempt.LayersIn(dir))
	return s, func() { db.Close() }, nil
}

// tell says what the trial came to, part by part.
func (d *doctor) tell(repo forge.Repo, g *attempt.Ground, refused *thread.Decided, took time.Duration) {
	d.add("repository", checkOK, fmt.Sprintf("%s is fetched", repo.FullName()), "")
	if refused != nil && len(refused.Problems) > 0 {
		for _, p := range refused.Problems {
			d.add("pawl.yml", checkFail, fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message), "correct it on the default branch; config/repo-example.yml shows every key")
		}
		return
	}
	if refused != nil && refused.Rule != policy.RuleSetupFailed {
		d.add("repository", checkFail, refused.Reasons.String(), refused.Hint)
		return
	}
	if reflect.ValueOf(g.Repo).IsZero() {
		d.add("pawl.yml", checkWarn, config.RepoFile+" is not on the default branch: the server's configuration holds", "config/repo-example.yml shows every key")
	} else {
		d.add("pawl.yml", checkOK, config.RepoFile+" has no error", "")
	}
	if refused != nil {
		d.add("setup", checkFail, refused.Reasons.String()+render.When(refused.Output != "", "; it printed "+render.Tail(refused.Output, 500)), refused.Hint)
		return
	}
	if g.Image != "" {
		d.add("image", checkOK, fmt.Sprintf("%s is %s", g.Repo.Environment.Image, g.Image), "")
	}
	switch n := len(g.Effective.Environment.Setup); {
	case n > 0:
		d.add("setup", checkOK, fmt.Sprintf("%s ended with exit code 0 (all together took %s)", policy.Plural(n, "command"), render.Span(took)), "")
	case g.Proposal.Command != "":
		d.add("setup", checkWarn, fmt.Sprintf("there is none; %s is the usual command for %s", g.Proposal.Command, g.Proposal.File),
			fmt.Sprintf("to have it run, write into %s: environment: {setup: [%q]}", config.RepoFile, g.Proposal.Command))
	default:
		d.add("setup", checkOK, "there is none, and no file that Pawl knows asks for one", "")
	}
	d.verified(g)
}

// verified says what the verify commands came to on the default branch.
func (d *doctor) verified(g *attempt.Ground) {
	if len(g.Effective.Verify) == 0 {
		d.add("verify", checkWarn, "there are no verify commands, so nothing is called verified", fmt.Sprintf("write into %s what must succeed: verify: [\"go test ./...\"]", config.RepoFile))
	}
	for _, v := range g.Before {
		command := render.Line(v.Command, 80)
		switch counted := v.PassedTests + v.FailedTests; {
		case v.Unable() != "":
			d.add("verify", checkFail, fmt.Sprintf("%s cannot work here: %s", command, v.Unable()),
				"mend it, or the setup or the image that it needs; every thread would stop before its first attempt")
		case !v.Passed:
			failing := policy.Names(v.Failing)
			if len(failing) > shownTests {
				failing = append(failing[:shownTests:shownTests], "…")
			}
			d.add("verify", checkWarn, fmt.Sprintf("%s fails on the default branch with exit code %d%s", command, v.Exit, render.When(len(failing) > 0, ": "+strings.Join(failing, ", "))),
				"what fails here is told to agents as known, and no work is called verified while it fails")
		default:
			ran := "no test runner was recognised"
			if counted > 0 {
				ran = policy.Plural(counted, "test") + " ran"
			} else if v.Runner != "" {
				ran = v.Runner + " counted no tests"
			}
			d.add("verify", checkOK, fmt.Sprintf("%s ended with exit code 0 after %s; %s", command, render.Span(time.Duration(v.MS)*time.Millisecond), ran), "")
		}
	}
}
