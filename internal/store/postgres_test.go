package store_test

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
)

// postgres is a server of the test's own, reached through a socket.
type postgres struct {
	dir, bin string
	attr     *syscall.SysProcAttr
	server   *exec.Cmd

	databases int
	template  string // a database with Pawl's tables; none yet when empty
}

// startPostgres starts a server from the binaries of a Debian or Red Hat
// package; it skips the test where there are none.
func startPostgres(t *testing.T) *postgres {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	if path, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(path))
	}
	if len(dirs) == 0 {
		t.Skip("PostgreSQL is not installed: neither /usr/lib/postgresql/*/bin nor initdb in PATH")
	}
	dir, err := os.MkdirTemp("", "pawlpg") // short, for the socket's name
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	p := &postgres{dir: dir, bin: dirs[len(dirs)-1], attr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}}
	if os.Geteuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("nobody")
		check(t, err)
		uid, err := strconv.Atoi(u.Uid)
		check(t, err)
		check(t, os.Chown(dir, uid, -1))
		p.attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(os.Getgid())}
	}
	initdb := exec.Command(filepath.Join(p.bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", "pawl", "-A", "trust", "-E", "UTF8", "--locale=C", "-N")
	initdb.Dir, initdb.SysProcAttr = dir, p.attr
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	p.start(t)
	t.Cleanup(func() { p.kill() })
	return p
}

// start starts the server and waits until it answers. It does not wait for the
// disk: these tests end processes, never the machine.
func (p *postgres) start(t *testing.T) {
	t.Helper()
	log := must(os.Create(filepath.Join(p.dir, "log")))(t)
	defer log.Close()
	p.server = exec.Command(filepath.Join(p.bin, "postgres"), "-D", filepath.Join(p.dir, "data"), "-k", p.dir,
		"-c", "listen_addresses=", "-c", "max_connections=200", "-c", "fsync=off")
	p.server.Dir, p.server.SysProcAttr = p.dir, p.attr
	p.server.Stdout, p.server.Stderr = log, log
	check(t, p.server.Start())
	db := rawDB(t, p.address("postgres"))
	for started := time.Now(); ; {
		err := db.PingContext(t.Context())
		if err == nil {
			return
		}
		if time.Since(started) > patience {
			text, _ := os.ReadFile(log.Name())
			t.Fatalf("PostgreSQL does not get ready: %v\n%s", err, text)
		}
	}
}

// kill ends the server at once, as a crash does: the next start recovers.
func (p *postgres) kill() {
	p.server.Process.Signal(syscall.SIGQUIT)
	p.server.Wait()
}

func (p *postgres) address(name string) string {
	return fmt.Sprintf("postgres://pawl@/%s?host=%s", name, p.dir)
}

// newDatabase makes a database with Pawl's tables, a copy of one that was
// migrated once: migrating takes much of a second.
func (p *postgres) newDatabase(t testing.TB) string {
	if p.template == "" {
		dsn := p.emptyDatabase(t)
		check(t, must(store.Open(t.Context(), dsn, store.Options{}))(t).Close())
		p.template = fmt.Sprintf("exam%d", p.databases)
	}
	return p.create(t, " TEMPLATE "+p.template)
}

// emptyDatabase makes a database without tables.
func (p *postgres) emptyDatabase(t testing.TB) string { return p.create(t, "") }

func (p *postgres) create(t testing.TB, how string) string {
	t.Helper()
	p.databases++
	name := fmt.Sprintf("exam%d", p.databases)
	must(rawDB(t, p.address("postgres")).Exec("CREATE DATABASE " + name + how))(t)
	return p.address(name)
}
