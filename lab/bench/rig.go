package main

import (
	"context"
	"time"

	"github.com/pawlbot/pawl/lab/rig"
)

const (
	repo   = rig.Repo
	writer = rig.Writer
	reader = rig.Reader
	secret = rig.Secret
)

// bench is a rig with helpers for the measurements.
type bench struct{ *rig.Rig }

func newBench(ctx context.Context, bin, dir, script, stream, mode, more string) (*bench, error) {
	return newBenchAt(ctx, time.Now, bin, dir, script, stream, mode, more)
}

func newBenchAt(ctx context.Context, now func() time.Time, bin, dir, script, stream, mode, more string) (*bench, error) {
	r, err := rig.NewAt(ctx, now, bin, dir, script, stream, mode, more)
	if err != nil {
		return nil, err
	}
	return &bench{r}, nil
}

// node returns another server for the same GitHub. It is not started.
func (r *bench) node() *bench {
	n := *r.Rig
	n.Server, n.Exited = nil, nil
	return &bench{&n}
}
