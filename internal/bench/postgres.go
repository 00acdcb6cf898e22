package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/internal/store"
)

// postgres is a PostgreSQL server with its own settings, durable as it comes,
// that listens on a socket only.
type postgres struct {
	dir    string
	server *exec.Cmd
}

// startPostgres starts one from the Debian package; why says that it is not
// installed.
func startPostgres(ctx context.Context) (p *postgres, why string, err error) {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if len(dirs) == 0 {
		return nil, "PostgreSQL is not installed (/usr/lib/postgresql/*/bin)", nil
	}
	bin := dirs[len(dirs)-1]
	dir, err := os.MkdirTemp("", "pawlpg") // short, for the socket's name
	if err != nil {
		return nil, "", err
	}
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Geteuid() == 0 { // the server refuses to run as root
		if attr.Credential, err = nobody(dir); err != nil {
			return nil, "", errors.Join(err, os.RemoveAll(dir))
		}
	}
	p = &postgres{dir: dir}
	initdb := exec.CommandContext(ctx, filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "pawl", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.Dir, initdb.SysProcAttr = dir, attr
	if said, err := initdb.CombinedOutput(); err != nil {
		return nil, "", errors.Join(fmt.Errorf("initdb: %w\n%s", err, said), os.RemoveAll(dir))
	}
	p.server = exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-k", dir, "-c", "listen_addresses=", "-c", "max_connections=200")
	p.server.Dir, p.server.SysProcAttr = dir, attr
	if err := p.server.Start(); err != nil {
		return nil, "", errors.Join(err, os.RemoveAll(dir))
	}
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		db, err := store.Open(ctx, p.dsn("postgres"), store.Options{})
		if err == nil {
			return p, "", db.Close()
		}
		if time.Since(began) > 30*time.Second || ctx.Err() != nil {
			return nil, "", errors.Join(fmt.Errorf("PostgreSQL does not get ready: %w", err), p.stop())
		}
	}
}

// nobody is who owns the server when root starts it.
func nobody(dir string) (*syscall.Credential, error) {
	u, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(os.Getgid())}, os.Chown(dir, int(uid), -1)
}

func (p *postgres) dsn(name string) string {
	return fmt.Sprintf("postgres://pawl@/%s?host=%s", name, p.dir)
}

// newDatabase makes an empty database.
func (p *postgres) newDatabase(ctx context.Context, name string) (dsn string, err error) {
	db, err := store.Open(ctx, p.dsn("postgres"), store.Options{})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	_, err = db.DB().ExecContext(ctx, "CREATE DATABASE "+name)
	return p.dsn(name), err
}

func (p *postgres) stop() error {
	err := p.server.Process.Signal(syscall.SIGQUIT)
	_ = p.server.Wait() // it ends by the signal
	return errors.Join(err, os.RemoveAll(p.dir))
}
