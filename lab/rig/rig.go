// Package rig gives the lab's measurements a fake GitHub in this process, and the built program as a server process.
package rig

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
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	Repo   = "acme/widgets"
	Writer = "ada"     // may write
	Reader = "mallory" // may read; ignored
	Secret = "a webhook secret of some length"
)

// Rig is a fake GitHub and, once started, the server process.
type Rig struct {
	World  *fakegithub.Server
	Bin    string
	Dir    string // configuration, database, data, agent
	DSN    string // database address; empty for SQLite in Dir
	Addr   string
	Server *exec.Cmd
	Exited chan error
}

// New creates a fake GitHub with one repository, and a configuration whose backend is a shell script. mode is the
// sandbox's mode, stream is the format of the script's output, and more is additional YAML.
func New(ctx context.Context, bin, dir, script, stream, mode, more string) (r *Rig, err error) {
	return NewAt(ctx, time.Now, bin, dir, script, stream, mode, more)
}

func NewAt(ctx context.Context, now func() time.Time, bin, dir, script, stream, mode, more string) (r *Rig, err error) {
	permissions := setup.AppPermissions()
	permissions["actions"] = "write" // so that Pawl can re-run failed jobs
	world, err := fakegithub.New(fakegithub.Options{AppID: 1, Slug: "pawl", WebhookSecret: Secret, Now: now, Permissions: permissions})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, world.Close())
		}
	}()
	r = &Rig{World: world, Bin: bin, Dir: dir}
	if err := r.World.AddRepo(ctx, Repo, map[string]string{"README.md": "# widgets\n", "a.txt": "one\n"}); err != nil {
		return nil, err
	}
	if err := r.World.AddUser(Writer, 1001, map[string]string{Repo: "write"}); err != nil {
		return nil, err
	}
	if err := r.World.AddUser(Reader, 1002, map[string]string{Repo: "read"}); err != nil {
		return nil, err
	}
	if r.Addr, err = FreeAddress(); err != nil {
		return nil, err
	}
	r.World.SetWebhookURL(r.URL("/api/github/hook"))
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
%s`, r.Addr, r.World.WebURL(), strings.TrimSuffix(r.World.APIURL(), "/"), Secret, mode, agent, stream, more)
	return r, errors.Join(
		os.WriteFile(filepath.Join(dir, "app.pem"), r.World.PrivateKeyPEM(), 0o600),
		os.WriteFile(filepath.Join(dir, "pawl.yml"), []byte(text), 0o600),
		os.WriteFile(agent, []byte("#!/bin/sh\n"+script), 0o700),
	)
}

// FreeAddress returns an address of this machine with a free port.
func FreeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

func (r *Rig) URL(path string) string { return "http://" + r.Addr + path }

func (r *Rig) Database() string {
	if r.DSN != "" {
		return r.DSN
	}
	return "sqlite:" + filepath.Join(r.Dir, "pawl.db")
}

// UseDatabase makes servers use this database instead of the file in Dir.
func (r *Rig) UseDatabase(dsn string) error {
	r.DSN = dsn
	return r.Rewrite("sqlite:pawl.db", dsn)
}

func (r *Rig) Rewrite(before, after string) error {
	path := filepath.Join(r.Dir, "pawl.yml")
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if !bytes.Contains(text, []byte(before)) {
		return fmt.Errorf("%s does not contain %q", path, before)
	}
	return os.WriteFile(path, bytes.Replace(text, []byte(before), []byte(after), 1), 0o600)
}

// Start runs the program and returns the time from exec until /healthz answers 200.
func (r *Rig) Start(ctx context.Context) (time.Duration, error) {
	log, err := os.OpenFile(r.logFile(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	r.Server = exec.CommandContext(ctx, r.Bin, "serve", "--config", filepath.Join(r.Dir, "pawl.yml"))
	r.Server.Stderr = log
	began := time.Now()
	if err := r.Server.Start(); err != nil {
		return 0, err
	}
	r.Exited = make(chan error, 1)
	go func() { r.Exited <- r.Server.Wait() }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 5 * time.Second}
	ticker := time.NewTicker(time.Millisecond)
	defer ticker.Stop()
	for {
		if resp, err := client.Get(r.URL("/healthz")); err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return time.Since(began), nil
			}
		}
		select {
		case err := <-r.Exited:
			r.Exited <- err
			return 0, fmt.Errorf("pawl serve ended: %w\n%s", err, r.LogEnd())
		case <-ctx.Done():
			return 0, fmt.Errorf("pawl serve was not ready: %w\n%s", ctx.Err(), r.LogEnd())
		case <-ticker.C:
		}
	}
}

func (r *Rig) logFile() string { return filepath.Join(r.Dir, "server.log") }

// LogEnd returns the end of the server's log, for errors.
func (r *Rig) LogEnd() []byte {
	text, err := os.ReadFile(r.logFile())
	if err != nil {
		return []byte(err.Error())
	}
	return bytes.TrimSpace(text[max(0, len(text)-4096):])
}

func (r *Rig) Stop() error {
	if r.Server == nil || r.Server.Process == nil {
		return nil
	}
	err := r.Server.Process.Signal(syscall.SIGTERM)
	if errors.Is(err, os.ErrProcessDone) {
		err = nil
	}
	<-r.Exited
	r.Server = nil
	return err
}

func (r *Rig) Close() error { return errors.Join(r.Stop(), r.World.Close()) }

// Until polls a condition.
func (r *Rig) Until(ctx context.Context, what string, cond func() (bool, error)) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := cond()
		if err != nil || ok {
			return err
		}
		select {
		case err := <-r.Exited:
			r.Exited <- err
			return fmt.Errorf("%s did not happen; pawl serve ended: %w\n%s", what, err, r.LogEnd())
		case <-ctx.Done():
			return fmt.Errorf("%s did not happen: %w\n%s", what, ctx.Err(), r.LogEnd())
		case <-ticker.C:
		}
	}
}

// Settled waits until all deliveries are handled and no step is due.
func (r *Rig) Settled(ctx context.Context, db *store.Store) error {
	return r.Until(ctx, "quiet", func() (bool, error) {
		if err := r.World.WaitDelivered(ctx); err != nil {
			return false, err
		}
		s, err := db.Stats(ctx)
		return s.Deliveries[thread.Received] == 0 && s.Queued == 0 && s.Running == 0, err
	})
}

// Solve opens an issue, comments /pawl solve, and waits until the server is idle. It returns the thread and its log.
func (r *Rig) Solve(ctx context.Context, db *store.Store) (thread.ID, []thread.Event, error) {
	t := thread.ID{Owner: "acme", Name: "widgets"}
	n, err := r.World.OpenIssue(Repo, Writer, "A second line", "Please add a second line to a.txt.")
	if err != nil {
		return t, nil, err
	}
	t.Number = n
	if err := r.Settled(ctx, db); err != nil {
		return t, nil, err
	}
	if _, err := r.World.Comment(Repo, n, Writer, "/pawl solve"); err != nil {
		return t, nil, err
	}
	events, err := r.Solved(ctx, db, t)
	return t, events, err
}

// Solved waits for the end of a thread's attempt, and until the server is idle. It returns the thread's log.
func (r *Rig) Solved(ctx context.Context, db *store.Store, t thread.ID) (events []thread.Event, err error) {
	err = r.Until(ctx, "the end of the attempt", func() (bool, error) {
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
	if err := r.Settled(ctx, db); err != nil {
		return nil, err
	}
	return db.Events(ctx, t, 0)
}
