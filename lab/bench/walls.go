package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/sandbox"
)

// wallsAim limits how much longer a program takes in the sandbox with its own network than without a sandbox (median).
const wallsAim = 30 * time.Millisecond

// wallStarts is the number of starts with each kind of sandbox. The kinds take turns.
const wallStarts = 60

// measureWalls starts an empty program as a plain process, in the sandbox, and in the sandbox with its own network.
func measureWalls(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	plain, err := sandbox.New(ctx, sandbox.None)
	if err != nil {
		return nil, nil, err
	}
	box, err := sandbox.New(ctx, sandbox.Auto)
	if err == nil {
		err = box.UseProgram(ctx, bin, true)
	}
	if errors.Is(err, sandbox.ErrUnavailable) {
		return nil, []string{fmt.Sprintf("The sandbox's network was not measured: %v.", err)}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	limits := config.Default().Sandbox
	box.Limit(sandbox.Limits{Memory: int64(limits.Memory), CPUs: limits.CPUs, PIDs: limits.PIDs, Disk: int64(limits.Disk)})
	spec := sandbox.Spec{Argv: []string{"true"}, Dir: filepath.Join(dir, "work"), Home: filepath.Join(dir, "home"), Env: []string{"PATH=/usr/bin:/bin"}}
	if err := errors.Join(os.MkdirAll(spec.Dir, 0o700), os.MkdirAll(spec.Home, 0o700)); err != nil {
		return nil, nil, err
	}
	walled := spec
	walled.Network = &sandbox.Network{Ports: []int{29401, 29402}, Serve: func([]net.Listener) {}}
	var none, auto, walls []time.Duration
	for range wallStarts {
		for _, way := range []struct {
			box  *sandbox.Sandbox
			spec sandbox.Spec
			took *[]time.Duration
		}{{plain, spec, &none}, {box, spec, &auto}, {box, walled, &walls}} {
			began := time.Now()
			if err := finish(ctx, way.box, way.spec); err != nil {
				return nil, nil, err
			}
			*way.took = append(*way.took, time.Since(began))
		}
	}
	more := quantile(walls, 0.5) - quantile(none, 0.5)
	rows = []row{
		{"a program from start to end, no sandbox", spread(none), "", false},
		{"the same, in the sandbox with the host's network", spread(auto), "", false},
		{"the same, in the sandbox with its own network", spread(walls), "", false},
		{"additional time of the sandbox with its own network", ms(more), "≤ " + ms(wallsAim), more <= wallsAim},
	}
	return rows, nil, nil
}

// finish runs a silent program to its end.
func finish(ctx context.Context, box *sandbox.Sandbox, spec sandbox.Spec) error {
	p, err := box.Start(ctx, spec)
	if err != nil {
		return err
	}
	go io.Copy(io.Discard, p.Stdout())
	output, _ := io.ReadAll(p.Stderr())
	exit, err := p.Wait()
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the program ended with status %d: %s", exit.Code, output)
	}
	return err
}
