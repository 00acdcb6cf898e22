package main

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
	"github.com/pawlbot/pawl/internal/wait"
)

const (
	// agentsTime is how long a start waits for the CLIs to tell their versions; who takes longer is heard later.
	agentsTime = 5 * time.Second
	// outsideAfter is when a server that has begun to work looks at what others answer.
	outsideAfter = 30 * time.Second
)

// serverChecks are those of pawl doctor that a server makes, too.
type serverChecks struct {
	*doctor
	agents chan []finding // of the CLIs, once
}

// startChecks refuses to start where no attempt could: what fails there does not pass by itself. It adds to the
// configuration what newDoctor does. A backend that does not work is no reason while another one does.
func startChecks(ctx context.Context, cfg *config.Server, log zerolog.Logger) (*serverChecks, error) {
	c := &serverChecks{doctor: newDoctor(*cfg), agents: make(chan []finding, 1)}
	*cfg = c.cfg
	c.machine(ctx)
	if err := c.refused(); err != nil {
		return c, err
	}
	tell(c.found, log)
	asked := &doctor{cfg: c.cfg, box: c.box}
	go func() {
		asked.agents(ctx)
		c.agents <- asked.found
	}()
	select {
	case found := <-c.agents:
		c.agents <- nil
		broken := map[string]string{}
		for _, f := range found {
			if f.State == checkFail {
				broken[f.Check] = f.Check + ": " + f.Text + " (" + f.Hint + ")"
			}
		}
		if len(broken) == len(c.cfg.Backends) {
			return c, fmt.Errorf("no backend can work: %s", strings.Join(slices.Sorted(maps.Values(broken)), "; "))
		}
		tell(found, log)
	case <-time.After(agentsTime):
	case <-ctx.Done():
		return c, context.Cause(ctx)
	}
	return c, nil
}

// refused is what failed.
func (d *doctor) refused() error {
	var all []error
	for _, f := range d.found {
		if f.State == checkFail {
			all = append(all, fmt.Errorf("%s: %s (%s)", f.Check, f.Text, f.Hint))
		}
	}
	return errors.Join(all...)
}

// later makes the checks that need no answer before the server works.
func (c *serverChecks) later(ctx context.Context, log zerolog.Logger) {
	if wait.For(ctx, outsideAfter) != nil {
		return
	}
	beside := newDoctor(c.cfg)
	beside.outside(ctx)
	if ctx.Err() != nil {
		return
	}
	tell(beside.found, log)
	select {
	case found := <-c.agents:
		tell(found, log)
	case <-ctx.Done():
	}
}

// tell logs what is not as it should be.
func tell(all []finding, log zerolog.Logger) {
	for _, f := range all {
		if f.State != checkOK {
			log.Warn().Str("check", f.Check).Str("state", f.State).Str("hint", f.Hint).Msg(f.Text)
		}
	}
}
