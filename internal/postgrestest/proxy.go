package postgrestest

import (
	"io"
	"net"
	"path/filepath"
	"sync"
	"testing"
)

// Proxy forwards to a server on loopback, like a load balancer.
type Proxy struct {
	listener net.Listener
	server   string // the server's socket

	mu    sync.Mutex
	open  []net.Conn    // clients' connections
	quiet chan struct{} // closed to silence the open connections
	deaf  chan struct{} // nil while new connections reach the server; closed when they do again
}

// Proxy starts a proxy that ends with the test.
func (s *Server) Proxy(t testing.TB) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, server: filepath.Join(s.Dir, ".s.PGSQL.5432"), quiet: make(chan struct{})}
	t.Cleanup(p.close)
	go p.accept()
	return p
}

// Address returns a database's address through the proxy.
func (p *Proxy) Address(name string) string {
	return "postgres://pawl@" + p.listener.Addr().String() + "/" + name + "?sslmode=disable"
}

// Silence stops all traffic on open connections without a reset, as after a failover. New connections work.
func (p *Proxy) Silence() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.quiet)
	p.quiet = make(chan struct{})
}

// Hang silences open connections and blocks new ones until Mend.
func (p *Proxy) Hang() {
	p.Silence()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deaf = make(chan struct{})
}

// Mend unblocks new connections.
func (p *Proxy) Mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.deaf)
	p.deaf = nil
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.open = append(p.open, client)
		quiet, deaf := p.quiet, p.deaf
		p.mu.Unlock()
		go p.pass(client, quiet, deaf)
	}
}

func (p *Proxy) pass(client net.Conn, quiet, deaf <-chan struct{}) {
	if deaf != nil {
		return // the client waits for an answer
	}
	server, err := net.Dial("unix", p.server)
	if err != nil {
		client.Close()
		return
	}
	go relay(server, client, quiet)
	relay(client, server, quiet)
}

func relay(to, from net.Conn, quiet <-chan struct{}) {
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		select {
		case <-quiet:
			_, _ = io.Copy(io.Discard, from) // the kernel acknowledges unread data
			return
		default:
		}
		if _, failed := to.Write(b[:n]); err != nil || failed != nil {
			to.Close()
			return
		}
	}
}

func (p *Proxy) close() {
	p.listener.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		c.Close()
	}
}
