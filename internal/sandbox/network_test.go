package sandbox

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// walled returns a sandbox whose programs can have their own networks. This test binary creates the listeners inside.
func walled(t *testing.T) *Sandbox {
	t.Helper()
	s := in(t, Auto)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.UseProgram(t.Context(), self, true); err != nil {
		t.Fatal(err)
	}
	return s
}

// answering returns a network whose listeners send their index.
func answering(ports ...int) *Network {
	return &Network{Ports: ports, Serve: func(list []net.Listener) {
		for i, l := range list {
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					fmt.Fprintf(c, "listener %d\n", i)
					c.Close()
				}
			}()
		}
	}}
}

// greeting starts a service on the host that sends a greeting, and returns its port.
func greeting(t *testing.T, address string) (port string) {
	t.Helper()
	host, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host.Close() })
	go func() {
		for {
			c, err := host.Accept()
			if err != nil {
				return
			}
			io.WriteString(c, "the host\n")
			c.Close()
		}
	}()
	_, port, _ = net.SplitHostPort(host.Addr().String())
	return port
}

func TestOwnNetworkHasOnlyItsListeners(t *testing.T) {
	s := walled(t)
	port, port6 := greeting(t, "127.0.0.1:0"), greeting(t, "[::1]:0")
	abstract, err := net.Listen("unix", "@pawl-test-"+strconv.Itoa(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()
	lan := "192.0.2.1"
	if list, err := net.InterfaceAddrs(); err == nil {
		for _, a := range list {
			if n := a.(*net.IPNet); n.IP.To4() != nil && !n.IP.IsLoopback() {
				lan = n.IP.String()
			}
		}
	}
	text := fmt.Sprintf(`python3 - <<'END'
import socket, os
def tcp(host, port):
    try:
        s = socket.create_connection((host, port), 2); return s.recv(100).decode().strip()
    except OSError as e: return "closed"
def unix(path):
    s = socket.socket(socket.AF_UNIX)
    try: s.connect(path); return "open"
    except OSError: return "closed"
print("files:", [os.readlink("/proc/self/fd/" + f) for f in os.listdir("/proc/self/fd") if int(f) > 2 and os.path.exists("/proc/self/fd/" + f)])
print("first:", tcp("127.0.0.1", 29401))
print("second:", tcp("127.0.0.1", 29402))
print("host:", tcp("127.0.0.1", %[1]s))
print("host, IPv6:", tcp("::1", %[4]s))
print("lan:", tcp(%[2]q, %[1]s))
print("metadata:", tcp("169.254.169.254", 80))
print("abstract:", unix("\0pawl-test-%[3]d"))
try: socket.getaddrinfo("example.org", 443); print("resolver: there")
except OSError: print("resolver: none")
own = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(own.getsockname())
print("own server: works")
six = socket.create_server(("::1", 0), family=socket.AF_INET6); c = socket.create_connection(six.getsockname()[:2])
print("own server, IPv6: works")
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
try: u.sendto(b"x", (%[2]q, 53)); print("UDP: sent")
except OSError: print("UDP: closed")
print("interfaces:", [n for _, n in socket.if_nameindex()])
END`, port, lan, os.Getpid(), port6)
	spec := script(t, text)
	spec.Network = answering(29401, 29402)
	want := `files: []
first: listener 0
second: listener 1
host: closed
host, IPv6: closed
lan: closed
metadata: closed
abstract: closed
resolver: none
own server: works
own server, IPv6: works
UDP: closed
interfaces: ['lo']`
	if got := shell(t, s, spec); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// As a control, the same program without its own network reaches the host's network. Landlock also closes abstract
	// sockets, so this sandbox has no Landlock.
	spec = script(t, text)
	got := shell(t, in(t, Auto), spec)
	for _, line := range []string{"host: the host", "host, IPv6: the host", "abstract: open", "first: closed"} {
		if !strings.Contains(got, line) {
			t.Errorf("with the host's network: %s is not in\n%s", line, got)
		}
	}
}

func TestOwnNetworkDoesNotChangeTheProgram(t *testing.T) {
	s := walled(t)
	spec := script(t, `echo "$0 $1"; tr '\0' ' ' </proc/$$/cmdline; echo; cat; ulimit -n >/dev/null; exit 7`)
	spec.Argv = append(spec.Argv, "zero", "one")
	spec.Stdin = []byte("input")
	spec.Network = answering(29401)
	out, stderr, exit, err := run(t, s, spec)
	if err != nil || exit.Code != 7 || !strings.HasPrefix(out, "zero one\n") || !strings.HasSuffix(out, "input") || strings.Contains(out, InsideCommand) {
		t.Errorf("%q %q %+v %v", out, stderr, exit, err)
	}
	// A script without a shebang line runs with sh, as it does without its own network.
	spec = script(t, "")
	file := filepath.Join(spec.Dir, "plain")
	if err := os.WriteFile(file, []byte("echo by sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	spec.Argv, spec.Network = []string{file}, answering(29401)
	if got := shell(t, s, spec); got != "by sh" {
		t.Errorf("a script without a shebang line: %q", got)
	}
	if err := os.WriteFile(file, []byte("#!/none/interpreter\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if _, stderr, exit, err := run(t, s, spec); err != nil || exit.Code != 126 || !strings.Contains(stderr, "no such file") {
		t.Errorf("a program that cannot start: %q %+v %v", stderr, exit, err)
	}
}

func TestListenersEndWithTheProgram(t *testing.T) {
	s := walled(t)
	spec := script(t, "setsid sleep 1000 & sleep 1000")
	got := make(chan net.Listener, 1)
	spec.Network = &Network{Ports: []int{29401}, Serve: func(list []net.Listener) { got <- list[0] }}
	p, err := s.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, p.Stderr())
	go io.Copy(io.Discard, p.Stdout())
	l := <-got
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept()
		ended <- err
	}()
	p.Kill()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("the listener accepted a connection")
		}
	case <-time.After(20 * time.Second):
		t.Error("the listener is still open")
	}
}

func TestUnavailablePortPreventsTheStart(t *testing.T) {
	s := walled(t)
	spec := script(t, "echo began")
	spec.Network = &Network{Ports: []int{80}, Serve: func([]net.Listener) { t.Error("a listener was made") }}
	out, stderr, exit, err := run(t, s, spec)
	if err != nil || exit.Code != 126 || out != "" || !strings.Contains(stderr, "listen on port 80") {
		t.Errorf("%q %q %+v %v", out, stderr, exit, err)
	}
}

func TestOwnNetworkNeedsASandbox(t *testing.T) {
	s := in(t, None)
	if err := s.UseProgram(t.Context(), "/proc/self/exe", true); err == nil || s.Networks() {
		t.Errorf("mode none has networks: %v", err)
	}
	spec := script(t, "true")
	spec.Network = answering(29401)
	if _, err := s.Start(t.Context(), spec); err == nil {
		t.Error("the program started")
	}
}

// The network needs no file in the root.
func TestOwnNetworkWorksInARoot(t *testing.T) {
	s := walled(t)
	spec := script(t, "cat /etc/resolv.conf 2>/dev/null || echo no resolver")
	self, _ := os.Executable()
	spec.Root = newRoot(t, []string{"sh", "cat", self}, nil)
	spec.Network = answering(29401)
	if got := shell(t, s, spec); got != "no resolver" {
		t.Errorf("got %q", got)
	}
}
