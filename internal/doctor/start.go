package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/internal/web"
)

const (
	// agentsTime limits a start's wait for the CLIs' versions.
	agentsTime = 5 * time.Second
	// outsideAfter is when a working server checks other systems.
	outsideAfter = 30 * time.Second
)

// AtStart returns the checks that server.Deps runs at a start. They refuse the start if no attempt could work; one
// working backend suffices. later runs the remaining checks.
func AtStart(build web.Build) func(context.Context, *config.Server, zerolog.Logger) (later func(context.Context), err error) {
	return func(ctx context.Context, cfg *config.Server, log zerolog.Logger) (func(context.Context), error) {
		e := newExam(*cfg, build)
		*cfg = e.cfg
		s := &start{exam: e, log: log, agents: make(chan []Finding, 1)}
		if err := s.machine(ctx); err != nil {
			return nil, err
		}
		if err := s.backends(ctx); err != nil {
			return nil, err
		}
		return s.later, nil
	}
}

type start struct {
	*exam
	log    zerolog.Logger
	agents chan []Finding // receives the CLIs' findings once
}

func (s *start) machine(ctx context.Context) error {
	found := s.run(ctx, machine)
	var refused []error
	for _, f := range Failures(found) {
		refused = append(refused, f)
	}
	if len(refused) > 0 {
		return errors.Join(refused...)
	}
	s.tell(found)
	return nil
}

func (s *start) backends(ctx context.Context) error {
	go func() { s.agents <- s.run(ctx, agents) }()
	select {
	case found := <-s.agents:
		s.agents <- nil
		broken := map[string]string{}
		for _, f := range Failures(found) {
			broken[f.Check] = f.Error()
		}
		if len(broken) == len(s.cfg.Backends) {
			return fmt.Errorf("no backend can work: %s", strings.Join(slices.Sorted(maps.Values(broken)), "; "))
		}
		s.tell(found)
		return nil
	case <-time.After(agentsTime):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (s *start) later(ctx context.Context) {
	s.refused(ctx)
	if wait.For(ctx, outsideAfter) == nil {
		s.outside(ctx)
	}
}

// refused logs an error if GitHub refuses the App's ID or key. The server continues, because webhooks still arrive
// while an operator changes the key.
func (s *start) refused(ctx context.Context) {
	in := newExam(s.cfg, s.build).signIn(ctx)
	if in.err == nil || ctx.Err() != nil || errors.Is(in.err, forge.ErrUnavailable) {
		return
	}
	s.log.Error().Str("check", "github").Str("hint", in.hint).Err(in.err).
		Msg("GitHub refuses this App: no event is handled and no agent starts")
}

// outside checks other systems, and CLIs that were slow at the start.
func (s *start) outside(ctx context.Context) {
	found := newExam(s.cfg, s.build).run(ctx, outside)
	if ctx.Err() != nil {
		return
	}
	s.tell(found)
	select {
	case found := <-s.agents:
		s.tell(found)
	case <-ctx.Done():
	}
}

func (s *start) tell(all []Finding) {
	for _, f := range all {
		if f.State != OK {
			s.log.Warn().Str("check", f.Check).Str("state", f.State).Str("hint", f.Hint).Msg(f.Text)
		}
	}
}
