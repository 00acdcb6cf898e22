package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

// The world of every measurement.
const (
	repo   = "acme/widgets"
	writer = "ada"     // may write
	reader = "mallory" // may read, so what she says is ignored
	secret = "a webhook secret of some length"
)

// rig is a fake GitHub in this process and, once started, the program serving in
// a process of its own.
type rig struct {
	world  *fakegithub.Server
	bin    string
	dir    string // configuration, database, data, agent
	dsn    string // the database's address; empty for SQLite in dir
	addr   string
	server *exec.Cmd
	exited chan error
}

// newRig makes a world with one repository, and a configuration whose only
// backend is a shell script. more is YAML after the fixed part, mode that of the
// sandbox, stream how the script's output is read.
func newRig(ctx context.Context, bin, dir, script, stream, mode, more string) (r *rig, err error) {
	return newRigAt(ctx, time.Now, bin, dir, script, stream, mode, more)
}

// newRigAt makes a world whose clock is now.
func newRigAt(ctx context.Context, now func() time.Time, bin, dir, script, stream, mode, more string) (r *rig, err error) {
	r = &rig{bin: bin, dir: dir}
	if r.world, err = fakegithub.New(fakegithub.Options{AppID: 1, Slug: "pawl", WebhookSecret: secret, Now: now}); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.close())
		}
	}()
	if err := r.world.AddRepo(ctx, repo, map[string]string{"README.md": "# widgets\n", "a.txt": "one\n"}); err != nil {
		return nil, err
	}
	if err := r.world.AddUser(writer, 1001, map[string]string{repo: "write"}); err != nil {
		return nil, err
	}
	if err := r.world.AddUser(reader, 1002, map[string]string{repo: "read"}); err != nil {
		return nil, err
	}
	if r.addr, err = freeAddress(); err != nil {
		return nil, err
	}
	r.world.SetWebhookURL(r.url("/api/github/hook"))
	agent := filepath.Join(dir, "agent.sh")
	text := fmt.Sprintf(`server: {address: %q, pages: "127.0.0.1:0"}
github:
  web_url: %s
  v3_api_url: %s
  app: {integration_id: 1, webhook_secret: %q, private_key_file: app.pem}
database: sqlite:pawl.db
data_dir: data
sandbox: {mode: %s}
backends:
  - {name: mine, kind: command, argv: [%q], stream: %s}
%s`, r.addr, r.world.WebURL(), strings.TrimSuffix(r.world.APIURL(), "/"), secret, mode, agent, stream, more)
	return r, errors.Join(
		os.WriteFile(filepath.Join(dir, "app.pem"), r.world.PrivateKeyPEM(), 0o600),
		os.WriteFile(filepath.Join(dir, "pawl.yml"), []byte(text), 0o600),
		os.WriteFile(agent, []byte("#!/bin/sh\n"+script), 0o700),
	)
}

// freeAddress is one that nobody listened on a moment ago.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (r *rig) url(path string) string { return "http://" + r.addr + path }

func (r *rig) database() string {
	if r.dsn != "" {
		return r.dsn
	}
	return "sqlite:" + filepath.Join(r.dir, "pawl.db")
}

// start runs the program and returns how long it took from exec until /healthz
// answered 200, which it does when the server takes webhooks.
func (r *rig) start(ctx context.Context) (time.Duration, error) {
	log, err := os.OpenFile(r.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	r.server = exec.CommandContext(ctx, r.bin, "serve", "--config", filepath.Join(r.dir, "pawl.yml"))
	r.server.Stderr = log
	began := time.Now()
	if err := r.server.Start(); err != nil {
		return 0, err
	}
	r.exited = make(chan error, 1)
	go func() { r.exited <- r.server.Wait() }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		if resp, err := client.Get(r.url("/healthz")); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return time.Since(began), nil
			}
		}
		select {
		case err := <-r.exited:
			r.exited <- err
			return 0, fmt.Errorf("pawl serve ended: %w\n%s", err, r.logEnd())
		case <-ctx.Done():
			return 0, fmt.Errorf("pawl serve was not ready: %w\n%s", ctx.Err(), r.logEnd())
		case <-ticker.C:
		}
	}
}

func (r *rig) logFile() string { return filepath.Join(r.dir, "server.log") }

// logEnd is the end of the server's log, for errors.
func (r *rig) logEnd() []byte {
	text, err := os.ReadFile(r.logFile())
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-4096):])
}

// stop ends the server and waits for it.
func (r *rig) stop() error {
	if r.server == nil || r.server.Process == nil {
		return nil
	}
	err := r.server.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-r.exited
	r.server = nil
	return err
}

func (r *rig) close() error { return errors.Join(r.stop(), r.world.Close()) }

// until asks again and again whether something is so.
func (r *rig) until(ctx context.Context, what string, cond func() (bool, error)) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := cond()
		if err != nil || ok {
			return err
		}
		select {
		case err := <-r.exited:
			r.exited <- err
			return fmt.Errorf("%s did not happen; pawl serve ended: %w\n%s", what, err, r.logEnd())
		case <-ctx.Done():
			return fmt.Errorf("%s did not happen: %w\n%s", what, ctx.Err(), r.logEnd())
		case <-ticker.C:
		}
	}
}

// settled waits until every delivery was sent and handled and no step is due.
func (r *rig) settled(ctx context.Context, db *store.Store) error {
	return r.until(ctx, "quiet", func() (bool, error) {
		if err := r.world.WaitDelivered(ctx); err != nil {
			return false, err
		}
		s, err := db.Stats(ctx)
		return s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0, err
	})
}

// solve opens an issue, lets the writer ask for a solution, and returns the
// thread and its log when the attempt has ended and whatever follows is done.
func (r *rig) solve(ctx context.Context, db *store.Store) (thread.ID, []thread.Event, error) {
	t := thread.ID{Owner: "acme", Name: "widgets"}
	n, err := r.world.OpenIssue(repo, writer, "A second line", "Please add a second line to a.txt.")
	if err != nil {
		return t, nil, err
	}
	t.Number = n
	if err := r.settled(ctx, db); err != nil {
		return t, nil, err
	}
	if _, err := r.world.Comment(repo, n, writer, "/pawl solve"); err != nil {
		return t, nil, err
	}
	events, err := r.solved(ctx, db, t)
	return t, events, err
}

// solved is the log of a thread once its attempt has ended and whatever follows is done.
func (r *rig) solved(ctx context.Context, db *store.Store, t thread.ID) (events []thread.Event, err error) {
	err = r.until(ctx, "the end of the attempt", func() (bool, error) {
		if events, err = db.Events(ctx, t, 0); err != nil {
			return false, err
		}
		state, err := thread.Fold(events)
		_, running := state.Running()
		return len(state.Attempts) > 0 && !running && state.Decision != nil, err
	})
	if err != nil {
		return nil, err
	}
	if err := r.settled(ctx, db); err != nil {
		return nil, err
	}
	return db.Events(ctx, t, 0)
}
