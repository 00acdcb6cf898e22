package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/store"
)

// The cost of one webhook that is ignored.
const (
	ignoredAim   = time.Millisecond
	ignoredCount = 2000
	ignoredRate  = 400
	ignoredTurns = 3
)

// measureIgnored counts the processor time and the requests to GitHub of comments
// that nobody asked Pawl for, from the request until they are handled.
func measureIgnored(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	var each []time.Duration
	calls := 0
	for n := range ignoredTurns {
		own := filepath.Join(dir, fmt.Sprint(n))
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		cost, asked, err := ignored(ctx, bin, own)
		if err != nil {
			return nil, nil, err
		}
		each, calls = append(each, cost), calls+asked
	}
	return []row{
		{"processor time of one ignored webhook", fmt.Sprintf("%s / %s / %s", quantile(each, 0), quantile(each, 0.5), quantile(each, 1)),
			"median < " + ms(ignoredAim), quantile(each, 0.5) < ignoredAim},
		{fmt.Sprintf("GitHub API calls for %d ignored webhooks", ignoredTurns*ignoredCount), fmt.Sprint(calls), "0", calls == 0},
	}, nil, nil
}

func ignored(ctx context.Context, bin, dir string) (each time.Duration, calls int, err error) {
	r, err := newRig(ctx, bin, dir, "exit 1\n", "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if _, err := r.start(ctx); err != nil {
		return 0, 0, err
	}
	shots, err := r.comments()
	if err != nil {
		return 0, 0, err
	}
	db, err := store.OpenReadOnly(ctx, r.database(), store.Options{})
	if err != nil {
		return 0, 0, err
	}
	defer db.Close()
	l := load{addr: r.addr, shots: shots, connections: 8, rate: ignoredRate, time: time.Second, prefix: 1}
	if _, err := l.run(ctx); err != nil {
		return 0, 0, err
	}
	if err := r.settled(ctx, db); err != nil {
		return 0, 0, err
	}
	r.world.ResetCalls()
	before := cpuTime(r.server.Process.Pid)
	l.time, l.prefix = ignoredCount*time.Second/ignoredRate, 2
	res, err := l.run(ctx)
	if err := errors.Join(err, r.settled(ctx, db)); err != nil {
		return 0, 0, err
	}
	used := cpuTime(r.server.Process.Pid) - before
	calls, _ = restCalls(r.world.Calls())
	return (used / time.Duration(len(res.took))).Round(time.Microsecond), calls, nil
}
