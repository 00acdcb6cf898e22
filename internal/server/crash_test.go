package server_test

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
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// crashRig is a thread with one request and everything that a step needs.
type crashRig struct {
	*rig
	clock  *testrig.Clock
	store  *store.Store
	cfg    config.Server
	forge  *forge.Client
	thread thread.ID
}

func newCrashRig(t *testing.T) *crashRig {
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo two >> a.txt\n", "")
	c := &crashRig{rig: r, clock: &testrig.Clock{}}
	var err error
	c.cfg, err = config.Load(r.File(), os.LookupEnv)
	r.Must(err)
	r.Must(os.MkdirAll(c.cfg.DataDir, 0o700))
	c.forge, err = forge.New(forge.Config{WebURL: c.cfg.GitHub.WebURL, APIURL: c.cfg.GitHub.V3APIURL, AppID: 1,
		PrivateKey: r.World.PrivateKeyPEM(), UserAgent: "pawl/test", Now: c.clock.Now, Log: zerolog.Nop()})
	r.Must(err)
	c.store, err = store.Open(t.Context(), "sqlite:"+filepath.Join(r.Dir, "pawl.db"), store.Options{Now: c.clock.Now})
	r.Must(err)
	t.Cleanup(func() { c.store.Close() })
	n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A second line", "Please add a second line to a.txt.")
	r.Must(err)
	c.thread = thread.ID{Owner: "acme", Name: "widgets", Number: n}
	installation, err := r.World.InstallationID(testrig.Repo)
	r.Must(err)
	info, err := c.forge.Repositories.Get(t.Context(), forge.Repo{Owner: "acme", Name: "widgets", Installation: installation})
	r.Must(err)
	_, err = c.store.Append(t.Context(), c.thread, true, thread.NewEvent{Kind: thread.KindFeedback, At: c.clock.Now(), Data: thread.Feedback{
		Source: policy.FromComment, By: feedback.Actor{ID: 1001, Login: testrig.Writer, Type: "User"}, Command: "solve", Target: thread.Target{Kind: "issue", ID: int64(n)},
		Snapshot: &thread.Details{Installation: installation, RepoID: info.ID, Title: "A second line", Body: "Please add a second line to a.txt.", DefaultBranch: "main"},
	}})
	r.Must(err)
	return c
}

// live takes steps as a new process, until it dies or nothing is left to do.
func (c *crashRig) live(process int, st thread.Store) error {
	box, err := sandbox.New(c.T.Context(), sandbox.None)
	c.Must(err)
	s := &solver.Solver{Host: solver.GitHub{Forge: c.forge}, Env: attempt.Env{Store: st, Config: c.cfg, Sandbox: box, Node: fmt.Sprintf("node-%d", process),
		Now: c.clock.Now, Log: zerolog.New(c.Log), Lookup: os.LookupEnv}}
	s.Env.UseLayers(attempt.LayersIn(c.cfg.DataDir))
	return s.Step(c.T.Context(), c.thread)
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
	c.Must(os.WriteFile(filepath.Join(c.Dir, "agent.sh"), []byte("#!/bin/sh\nexec sleep 600\n"), 0o700))
	c.Must(c.live(1, &late{Store: c.store, stop: func() {
		_, err := c.store.Append(t.Context(), c.thread, true, thread.NewEvent{Kind: thread.KindControl, At: c.clock.Now(),
			Data: thread.Feedback{Command: "stop", By: feedback.Actor{Login: testrig.Writer}}})
		c.Must(err)
	}}))
	if v := c.view(); v.Rule != "cancelled" || len(v.Attempts) != 1 || v.Attempts[0].Outcome != "cancelled" {
		t.Errorf("%s (%s %q), attempts %+v; want one, cancelled", v.State, v.Rule, v.Reasons, v.Attempts)
	}
}

func (c *crashRig) view() checkrun.View {
	s := &solver.Solver{Env: attempt.Env{Store: c.store, Config: c.cfg, Now: c.clock.Now}}
	v, err := s.View(c.T.Context(), c.thread)
	c.Must(err)
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
	testrig.EndToEnd(t)
	c := newCrashRig(t)
	if err := c.live(1, &unlinked{Store: c.store}); err == nil {
		t.Fatal("the pull request was logged")
	}
	pulls := c.World.Pulls(testrig.Repo)
	if len(pulls) != 1 {
		t.Fatalf("%d pull requests, want 1", len(pulls))
	}
	c.Must(c.World.ClosePull(testrig.Repo, pulls[0].Number, testrig.Writer))
	c.clock.Reach(c.clock.Now().Add(thread.LeaseTime + time.Second))
	c.Must(c.live(2, c.store))
	if pulls := c.World.Pulls(testrig.Repo); len(pulls) != 1 || c.view().PullURL == "" {
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
	testrig.EndToEnd(t)
	c := newCrashRig(t)
	c.Must(c.live(1, c.store))
	status := func() string { return c.World.Comments(testrig.Repo, c.thread.Number)[0].Body }
	without := status()
	c.cfg.HTTP.PublicURL = "https://pawl.test"
	if err := c.live(2, &unheard{Store: c.store}); err == nil || status() == without {
		t.Fatalf("the edit was logged (%v), or there was none: %s", err, status())
	}
	c.cfg.HTTP.PublicURL = ""
	c.clock.Reach(c.clock.Now().Add(thread.LeaseTime + time.Second))
	c.Must(c.live(3, c.store))
	if status() != without {
		t.Errorf("the comment says\n%s\nwant\n%s", status(), without)
	}
}
