// Package postgrestest starts PostgreSQL servers for tests. Only tests import it.
package postgrestest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"

	"github.com/pawlbot/pawl/internal/needs"
)

// patience limits a server's start on a busy machine, including its recovery after a crash.
const patience = 10 * time.Minute

// Server is a test's own PostgreSQL server, reached through a socket. It runs without fsync, since tests kill processes
// but never the machine.
type Server struct {
	// Dir holds the socket and, in data, the server's files.
	Dir string

	bin       string
	attr      *syscall.SysProcAttr
	cmd       *exec.Cmd // the last started server
	databases int
}

// Start starts a server from a Debian or Red Hat package and kills it when the test ends. Only make
// test-all runs such tests.
func Start(t testing.TB) *Server {
	t.Helper()
	needs.All(t, "PostgreSQL")
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if len(dirs) == 0 {
		t.Skip("PostgreSQL is not installed: neither /usr/lib/postgresql/*/bin nor initdb in PATH")
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, err := os.MkdirTemp("", "pawlpg") // short, for the socket's name
	must(err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	s := &Server{Dir: dir, bin: dirs[len(dirs)-1], attr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}}
	if os.Geteuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("nobody")
		must(err)
		uid, err := strconv.ParseUint(u.Uid, 10, 32)
		must(err)
		must(os.Chown(dir, int(uid), -1))
		s.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(os.Getgid())}
	}
	initdb := exec.Command(filepath.Join(s.bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "pawl", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	initdb.Dir, initdb.SysProcAttr = dir, s.attr
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	s.Restart(t)
	t.Cleanup(s.Kill)
	return s
}

// Restart starts the server after Kill and waits until it answers.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	log, err := os.Create(filepath.Join(s.Dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.cmd = exec.Command(filepath.Join(s.bin, "postgres"), "-D", filepath.Join(s.Dir, "data"), "-k", s.Dir,
		"-c", "listen_addresses=", "-c", "max_connections=300", "-c", "fsync=off")
	s.cmd.Dir, s.cmd.SysProcAttr = s.Dir, s.attr
	s.cmd.Stdout, s.cmd.Stderr = log, log
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	db := s.Open(t, "postgres")
	s.await(t, db, func() string {
		text, _ := os.ReadFile(log.Name())
		return string(text)
	})
}

// Kill ends the server and all connections at once, as a crash does.
func (s *Server) Kill() {
	s.cmd.Process.Signal(syscall.SIGQUIT)
	s.cmd.Wait()
}

// Address returns a database's address for Pawl's configuration.
func (s *Server) Address(name string) string {
	return fmt.Sprintf("postgres://pawl@/%s?host=%s", name, s.Dir)
}

// Pooler starts a pgbouncer in front of the server, with a pool mode such as "transaction". address returns a
// database's address through it. Each PostgreSQL connection serves several clients. settings are lines of its
// configuration.
func (s *Server) Pooler(t testing.TB, mode string, settings ...string) (address func(name string) string) {
	t.Helper()
	program := needs.Program(t, "pgbouncer")
	dir, err := os.MkdirTemp(s.Dir, "pooler")
	if err != nil {
		t.Fatal(err)
	}
	if s.attr.Credential != nil {
		err = os.Chown(dir, int(s.attr.Credential.Uid), -1)
	}
	file := filepath.Join(dir, "ini")
	text := fmt.Sprintf("[databases]\n* = host=%s user=pawl\n[pgbouncer]\npool_mode = %s\nauth_type = any\n"+
		"unix_socket_dir = %s\nlisten_port = 5432\n%s\n", s.Dir, mode, dir, strings.Join(settings, "\n"))
	if err := errors.Join(err, os.WriteFile(file, []byte(text), 0o644)); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, file)
	cmd.Dir, cmd.SysProcAttr = dir, s.attr
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stderr, &stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	address = func(name string) string { return fmt.Sprintf("postgres://pawl@/%s?host=%s", name, dir) }
	db, err := sql.Open("pgx", address("postgres")+"&default_query_exec_mode=simple_protocol")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s.await(t, db, func() string { return stderr.String() })
	return address
}

// await waits until a server answers.
func (s *Server) await(t testing.TB, db *sql.DB, output func() string) {
	t.Helper()
	for started := time.Now(); ; {
		err := db.PingContext(t.Context())
		if err == nil {
			return
		}
		if time.Since(started) > patience {
			t.Fatalf("the server does not get ready: %v\n%s", err, output())
		}
		time.Sleep(20 * time.Millisecond) // leaves the processor to the server
	}
}

// Open opens a database as its owner, until the test ends.
func (s *Server) Open(t testing.TB, name string) *sql.DB {
	t.Helper()
	db, err := sql.Open("pgx", s.Address(name))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// NewDatabase makes an empty database, or a copy of template, and returns the new name.
func (s *Server) NewDatabase(t testing.TB, template string) (name string) {
	t.Helper()
	s.databases++
	name = fmt.Sprintf("pawl%d", s.databases)
	how := ""
	if template != "" {
		how = " TEMPLATE " + template
	}
	db := s.Open(t, "postgres")
	defer db.Close()
	if _, err := db.ExecContext(t.Context(), "CREATE DATABASE "+name+how); err != nil {
		t.Fatal(err)
	}
	return name
}
