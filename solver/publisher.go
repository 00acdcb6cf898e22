package solver

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// publisher is a thread under its lease: its folded log, and what is written to the
// log and shown at GitHub of it. The lease may be that of a step or of an attempt.
type publisher struct {
	*Solver
	Config *config.Server // that this step goes by
	Forge  *forge.Client  // whose writes the lease confirms; nil without GitHub
	thread thread.ID
	lease  *lease.Holder
	app    forge.App // who Pawl is; zero without GitHub
	state  thread.State
	log    zerolog.Logger
	plain  zerolog.Logger // log without what the thread's log tells
}

func (p *publisher) load(ctx context.Context) (err error) {
	if _, p.state, err = thread.Load(ctx, p.Store, p.thread); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	// Log lines name the delivery that brought the newest remark or change, and the attempt that runs.
	log := p.plain.With()
	if p.state.Delivery != "" {
		log = log.Str("delivery", p.state.Delivery)
	}
	if a, running := p.state.Running(); running {
		log = log.Int("attempt", a.N)
	}
	p.log = log.Logger()
	return nil
}

// repo is where the thread is at GitHub, after a renaming under the new name: there is shown how it ended.
func (p *publisher) repo() forge.Repo {
	n := p.state.Snapshot
	r := forge.Repo{Owner: p.thread.Owner, Name: p.thread.Name, ID: n.RepoID, Installation: n.Installation}
	if owner, name, ok := p.state.NewName(); ok {
		r.Owner, r.Name = owner, name
	}
	return r
}

// An act is logged before and after it is done. When the log holds only the
// beginning, it may have happened, and it is looked up at GitHub first.

// act does one thing under its key. It looks up first when an earlier try may have succeeded, and does nothing when it
// is done already. What is kept as it should be has a hash: it is made once, and done again in place of what has an id
// when it is to show something else.
func (p *publisher) act(ctx context.Context, key, hash string, find func() (thread.Act, bool, error), do func(id int64) (thread.Act, error)) error {
	old, begun := p.state.Acts[key]
	if old.Done && old.Hash == hash {
		return nil
	}
	if begun && !old.Done {
		found, ok, err := find()
		if err != nil {
			return fmt.Errorf("look up %s: %w", key, err)
		}
		if ok && hash == "" {
			return p.acted(ctx, key, found)
		}
		if ok { // as an earlier step left it
			old.ID = found.ID
		}
	} else if err := p.begin(ctx, thread.Act{Key: key, ID: old.ID, URL: old.URL}); err != nil {
		return err
	}
	crash.Point("act_begun")
	done, err := do(old.ID)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return p.acted(ctx, key, done)
}

func (p *publisher) begin(ctx context.Context, a thread.Act) error {
	if err := p.lease.Record(ctx, thread.KindActStarted, a); err != nil {
		return err
	}
	p.state.Acts[a.Key] = thread.ActState{Act: a}
	return nil
}

// says logs what Pawl is about to publish, so that a copy of it is known as its own.
func (p *publisher) says(ctx context.Context, text string) {
	var own feedback.Authored
	own.Read(p.state.Own)
	own.AddOwn(text)
	runs := own.Fresh()
	if len(runs) == 0 {
		return
	}
	p.state.Own = append(p.state.Own, runs...)
	if err := p.lease.Record(ctx, thread.KindPublished, thread.Authored{Runs: runs}); err != nil {
		p.log.Warn().Err(err).Msg("what is published was not logged; a copy of it would count as feedback")
	}
}

// acted logs that an act was done, and keeps the step's own state current.
func (p *publisher) acted(ctx context.Context, key string, a thread.Act) error {
	a.Key = key
	if err := p.lease.Record(ctx, thread.KindActDone, a); err != nil {
		return err
	}
	crash.Point("act_logged")
	p.state.Acts[key] = thread.ActState{Act: a, Done: true, At: p.Now()}
	if key == thread.ActPull {
		p.state.Pull = int(a.ID)
	}
	return nil
}
