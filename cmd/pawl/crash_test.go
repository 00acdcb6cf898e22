package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// crashRig is a thread with one request and everything that a step needs.
type crashRig struct {
	*rig
	clock  *clock
	store  *store.Store
	cfg    config.Server
	forge  *forge.Client
	thread thread.ID
}

func newCrashRig(t *testing.T) *crashRig {
	r := newRig(t, nil)
	r.agent("cat > /dev/null; echo two >> a.txt\n", "")
	c := &crashRig{rig: r, clock: &clock{}}
	var err error
	c.cfg, err = config.Load(r.file(), os.LookupEnv)
	r.must(err)
	r.must(os.MkdirAll(c.cfg.DataDir, 0o700))
	c.forge, err = forge.New(forge.Config{WebURL: c.cfg.GitHub.WebURL, APIURL: c.cfg.GitHub.V3APIURL, AppID: 1,
		PrivateKey: r.world.PrivateKeyPEM(), UserAgent: "pawl/test", Now: c.clock.now, Log: zerolog.Nop()})
	r.must(err)
	c.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(r.dir, "pawl.db"), store.Options{Now: c.clock.now})
	r.must(err)
	t.Cleanup(func() { c.store.Close() })
	n, err := r.world.OpenIssue(rigRepo, writer, "A second line", "Please add a second line to a.txt.")
	r.must(err)
	c.thread = thread.ID{Owner: "acme", Name: "widgets", Number: n}
	installation, err := r.world.InstallationID(rigRepo)
	r.must(err)
	info, err := c.forge.Repositories.Get(t.Context(), forge.Repo{Owner: "acme", Name: "widgets", Installation: installation})
	r.must(err)
	_, err = c.store.Append(t.Context(), c.thread, true, thread.NewEvent{Kind: thread.KindFeedback, At: c.clock.now(), Data: thread.Feedback{
		Source: policy.FromComment, By: feedback.Actor{ID: 1001, Login: writer, Type: "User"}, Command: "solve", Target: thread.Target{Kind: "issue", ID: int64(n)},
		Snapshot: &thread.Details{Installation: installation, RepoID: info.ID, Title: "A second line", Body: "Please add a second line to a.txt.", DefaultBranch: "main"},
	}})
	r.must(err)
	return c
}

// live takes steps as a new process, until it dies or nothing is left to do.
func (c *crashRig) live(process int, st thread.Store) error {
	box, err := sandbox.New(c.t.Context(), sandbox.None)
	c.must(err)
	s := &solver.Solver{Host: solver.GitHub{Forge: c.forge}, Env: attempt.Env{Store: st, Config: c.cfg, Sandbox: box, Node: fmt.Sprintf("node-%d", process),
		Now: c.clock.now, Log: zerolog.New(c.log), Lookup: os.LookupEnv}}
	s.Env.UseLayers(attempt.LayersIn(c.cfg.DataDir))
	return s.Step(c.t.Context(), c.thread)
}

// late appends a stop just before an attempt is logged: after the decision, and
// before anything looks out for a stop.
type late struct {
	thread.Store
	stop func()
}

func (l *late) AppendLeased(ctx context.Context, lease thread.Lease, b thread.Batch) error {
	for _, e := range b.Events {
		if e.Kind == thread.KindAttemptStarted {
			l.stop()
		}
	}
	return l.Store.AppendLeased(ctx, lease, b)
}

func TestAStopBetweenDecisionAndAttemptIsObeyed(t *testing.T) {
	t.Parallel()
	c := newCrashRig(t)
	c.must(os.WriteFile(filepath.Join(c.dir, "agent.sh"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	c.must(c.live(1, &late{Store: c.store, stop: func() {
		_, err := c.store.Append(t.Context(), c.thread, true, thread.NewEvent{Kind: thread.KindControl, At: c.clock.now(),
			Data: thread.Feedback{Command: "stop", By: feedback.Actor{Login: writer}}})
		c.must(err)
	}}))
	if v := c.view(); v.Rule != "cancelled" || len(v.Attempts) != 1 || v.Attempts[0].Outcome != "cancelled" {
		t.Errorf("%s (%s %q), attempts %+v; want one, cancelled", v.State, v.Rule, v.Reasons, v.Attempts)
	}
}

func (c *crashRig) view() checkrun.View {
	s := &solver.Solver{Env: attempt.Env{Store: c.store, Config: c.cfg, Now: c.clock.now}}
	v, err := s.View(c.t.Context(), c.thread)
	c.must(err)
	return v
}

// unlinked is a store that an opened pull request does not reach any more.
type unlinked struct{ thread.Store }

func (u *unlinked) AppendLeased(ctx context.Context, l thread.Lease, b thread.Batch) error {
	if b.Alias != 0 {
		return errors.New("the process died")
	}
	return u.Store.AppendLeased(ctx, l, b)
}

func TestAPullRequestThatWasClosedBeforeItWasLoggedIsNotOpenedAgain(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	c := newCrashRig(t)
	if err := c.live(1, &unlinked{Store: c.store}); err == nil {
		t.Fatal("the pull request was logged")
	}
	pulls := c.world.Pulls(rigRepo)
	if len(pulls) != 1 {
		t.Fatalf("%d pull requests, want 1", len(pulls))
	}
	c.must(c.world.ClosePull(rigRepo, pulls[0].Number, writer))
	c.clock.reach(c.clock.now().Add(thread.LeaseTime + time.Second))
	c.must(c.live(2, c.store))
	if pulls := c.world.Pulls(rigRepo); len(pulls) != 1 || c.view().PullURL == "" {
		t.Errorf("%d pull requests, want the one that people closed, and that the thread knows it", len(pulls))
	}
}

// unheard is a store that edits of the status comment do not reach any more.
type unheard struct{ thread.Store }

func (u *unheard) AppendLeased(ctx context.Context, l thread.Lease, b thread.Batch) error {
	for _, e := range b.Events {
		if act, ok := e.Data.(thread.Act); ok && e.Kind == thread.KindActDone && act.Key == thread.ActStatus && act.Hash != "" {
			return errors.New("the process died")
		}
	}
	return u.Store.AppendLeased(ctx, l, b)
}

func TestAnEditThatWasNotLoggedIsUndoneWithWhatItShowed(t *testing.T) {
	t.Parallel()
	endToEnd(t)
	c := newCrashRig(t)
	c.must(c.live(1, c.store))
	status := func() string { return c.world.Comments(rigRepo, c.thread.Number)[0].Body }
	without := status()
	c.cfg.HTTP.PublicURL = "https://pawl.test"
	if err := c.live(2, &unheard{Store: c.store}); err == nil || status() == without {
		t.Fatalf("the edit was logged (%v), or there was none: %s", err, status())
	}
	c.cfg.HTTP.PublicURL = ""
	c.clock.reach(c.clock.now().Add(thread.LeaseTime + time.Second))
	c.must(c.live(3, c.store))
	if status() != without {
		t.Errorf("the comment says\n%s\nwant\n%s", status(), without)
	}
}
