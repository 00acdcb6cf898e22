package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
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

const shownTests = 5

// repository tries the steps before a first attempt on the default branch: configuration, image, setup and verify
// commands. It uses a temporary folder without caches.
func (e *exam) repository(ctx context.Context) []Finding {
	owner, name, _ := strings.Cut(e.repo, "/")
	repo := forge.Repo{Owner: owner, Name: name}
	if err := e.find(ctx, &repo); err != nil {
		return failed(err.Error(), advice(err, "install the App on "+e.repo+", or correct the name"))
	}
	dir, err := os.MkdirTemp("", "pawl-doctor-")
	if err != nil {
		return failed(err.Error(), "set TMPDIR to a folder that this user can write to")
	}
	defer git.Remove(dir) // build tools leave read-only folders
	s, closing, err := e.trial(ctx, dir)
	if err != nil {
		return failed(err.Error(), "correct the problems in the lines above")
	}
	defer closing()
	began := time.Now()
	g, refused, err := s.Try(ctx, repo)
	if errors.Is(err, git.ErrMalformed) {
		return failed(err.Error(), "rewrite the history without that object, or ask GitHub; no other machine can fetch it either")
	}
	if err != nil {
		return failed(err.Error(), advice(err, "check that this machine reaches GitHub, and the disk below "+dir))
	}
	all := append(ok(repo.FullName()+" is fetched"), tried(g, refused, time.Since(began))...)
	if g == nil {
		return all
	}
	return append(all, e.placed(ctx, g.Effective.Environment.RunsOn)...)
}

// placed checks that this server or a running one has the labels that the repository's attempts need.
func (e *exam) placed(ctx context.Context, labels []string) []Finding {
	self := policy.Node{Labels: e.cfg.Node.Labels, Agents: e.cfg.Workers > 0}
	if len(labels) == 0 || self.Serves(labels) {
		return nil
	}
	others, err := e.nodes(ctx)
	d := policy.Elsewhere(labels, others)
	switch {
	case err != nil:
		return named("runs_on", failed(err.Error(), "correct database in the configuration"))
	case d.Rule == policy.RuleNoNode:
		return named("runs_on", failed(d.Reasons.String(), "start a server with these node.labels, or remove them from "+config.RepoFile))
	}
	return named("runs_on", ok("a running server has the labels "+strings.Join(labels, ", ")))
}

// nodes lists the servers that run on the configured database.
func (e *exam) nodes(ctx context.Context) ([]policy.Node, error) {
	db, err := store.Open(ctx, e.cfg.Database.DSN(), store.Options{Access: store.Reading})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	nodes := db.Nodes()
	if nodes == nil {
		return nil, nil
	}
	return nodes.Nodes(ctx, "")
}

// advice returns the hint in GitHub's error. For ErrNotFound and for errors of other types, it returns otherwise.
func advice(err error, otherwise string) string {
	if moved, ok := errors.AsType[*forge.Moved](err); ok {
		return "use the name " + moved.To
	}
	refused, ok := errors.AsType[*forge.Error](err)
	if !ok || refused.Kind == forge.ErrNotFound {
		return otherwise
	}
	return refused.Hint
}

func (e *exam) find(ctx context.Context, repo *forge.Repo) error {
	var err error
	if repo.Installation, err = e.app.client.Apps.Installation(ctx, *repo); err != nil {
		return err
	}
	info, err := e.app.client.Repositories.Get(ctx, *repo)
	repo.ID = info.ID
	return err
}

// trial creates a solver with its own database in a folder.
func (e *exam) trial(ctx context.Context, dir string) (_ *solver.Solver, closing func(), err error) {
	cfg := e.cfg
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
		Env: attempt.Env{
			Store:   db,
			Config:  cfg,
			Sandbox: box,
			Node:    server.NodeName(),
			Now:     time.Now,
			Log:     zerolog.Nop(),
			Lookup:  os.LookupEnv,
		},
		Host: solver.GitHub{Forge: e.app.client},
	}
	s.Env.UseLayers(attempt.LayersIn(dir))
	return s, func() { db.Close() }, nil
}

func named(check string, found []Finding) []Finding {
	for i := range found {
		found[i].Check = check
	}
	return found
}

func tried(g *attempt.Ground, refused *thread.Decided, took time.Duration) []Finding {
	if refused == nil {
		return slices.Concat(file(g), image(g), setUp(g, took), verified(g))
	}
	if len(refused.Problems) > 0 {
		return problems(refused.Problems)
	}
	if refused.Rule != policy.RuleSetupFailed {
		return failed(refused.Reasons.String(), refused.Hint)
	}
	text := refused.Reasons.String()
	if refused.Output != "" {
		text += "; it printed " + render.Tail(refused.Output, 500)
	}
	return append(file(g), named("setup", failed(text, refused.Hint))...)
}

func problems(list []thread.Problem) (all []Finding) {
	for _, p := range list {
		all = append(all, Finding{
			Check: "pawl.yml",
			State: Failed,
			Text:  fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message),
			Hint:  "correct it on the default branch; config/repo-example.yml shows every key",
		})
	}
	return all
}

func file(g *attempt.Ground) []Finding {
	if reflect.ValueOf(g.Repo).IsZero() {
		return named("pawl.yml", warning(
			config.RepoFile+" is not on the default branch: the server's configuration applies",
			"config/repo-example.yml shows every key",
		))
	}
	return named("pawl.yml", ok(config.RepoFile+" has no error"))
}

func image(g *attempt.Ground) []Finding {
	if g.Image == "" {
		return nil
	}
	return named("image", ok(fmt.Sprintf("%s is %s", g.Repo.Environment.Image, g.Image)))
}

func setUp(g *attempt.Ground, took time.Duration) []Finding {
	if n := len(g.Effective.Environment.Setup); n > 0 {
		return named("setup", ok(fmt.Sprintf("%s ended with exit code 0 (%s in total)", policy.Plural(n, "command"), render.Span(took))))
	}
	if g.Proposal.Command == "" {
		return named("setup", ok("there are no setup commands, and no known file suggests one"))
	}
	return named("setup", warning(
		fmt.Sprintf("there are no setup commands; %s is the usual command for %s", g.Proposal.Command, g.Proposal.File),
		fmt.Sprintf("to run it, add to %s: environment: {setup: [%q]}", config.RepoFile, g.Proposal.Command),
	))
}

func verified(g *attempt.Ground) (all []Finding) {
	if len(g.Effective.Verify) == 0 {
		all = warning(
			"there are no verify commands, so no work is verified",
			fmt.Sprintf("add to %s the commands that must succeed: verify: [\"go test ./...\"]", config.RepoFile),
		)
	}
	for _, v := range g.Before {
		all = append(all, verification(v)...)
	}
	return named("verify", all)
}

func verification(v policy.Verified) []Finding {
	command := render.Line(v.Command, 80)
	if why := v.Unable(); why != "" {
		return failed(
			fmt.Sprintf("%s cannot work here: %s", command, why),
			"fix it, or the setup or the image that it needs; until then, every thread stops before its first attempt",
		)
	}
	if !v.Passed {
		return warning(
			fmt.Sprintf("%s fails on the default branch with exit code %d%s", command, v.Exit, failing(v)),
			"agents learn that these failures are known; no work is verified while they persist",
		)
	}
	took := render.Span(time.Duration(v.MS) * time.Millisecond)
	return ok(fmt.Sprintf("%s ended with exit code 0 after %s; %s", command, took, counted(v)))
}

// failing lists the first failing tests after a colon.
func failing(v policy.Verified) string {
	names := policy.Names(v.Failing)
	if len(names) == 0 {
		return ""
	}
	if len(names) > shownTests {
		names = append(names[:shownTests:shownTests], "…")
	}
	return ": " + strings.Join(names, ", ")
}

func counted(v policy.Verified) string {
	if n := v.PassedTests + v.FailedTests; n > 0 {
		return policy.Plural(n, "test") + " ran"
	}
	if v.Runner != "" {
		return v.Runner + " counted no tests"
	}
	return "no test runner was recognised"
}
