package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dustin/go-humanize"
	"golang.org/x/net/netutil"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// Time and size limits. The client is on the same machine.
const (
	headerTime = 10 * time.Second
	idleTime   = 2 * time.Minute
	dialTime   = 15 * time.Second
	maxHeader  = 64 << 10 // bytes
	// maxConns limits one program's connections; package managers open dozens.
	maxConns = 256
	// maxRefused limits one program's reported names; maxName limits a name's bytes.
	maxRefused = 20
	maxName    = 100
)

type Options struct {
	Allow []policy.HostRule
	// Private networks may be reached through listed names although they are not public.
	Private []netip.Prefix
	// Download limits the bytes from all hosts together; zero means no limit.
	Download int64
	// Where names the list in refusals, such as "network.agent".
	Where string
	// Resolver finds addresses; nil is the host's.
	Resolver *net.Resolver
}

// Proxy serves one program and its children. Create it with New.
type Proxy struct {
	Options
	server  *http.Server
	forward *httputil.ReverseProxy
	plain   *http.Transport
	own     func(netip.Addr) bool // see own

	sent, received atomic.Int64 // see Traffic

	mu      sync.Mutex
	closed  bool
	open    map[net.Conn]bool // for Close
	refused map[string]string // reason by name and port
}

type Traffic struct {
	Sent, Received int64 // bytes of TCP payload
	// Refused lists the refused HOST:PORT names, sorted. A reason follows unless the name is just not on the list.
	Refused []string
}

func New(o Options) *Proxy {
	p := &Proxy{Options: o, own: own, open: map[net.Conn]bool{}, refused: map[string]string{}}
	p.plain = &http.Transport{
		DialContext:     func(ctx context.Context, _, address string) (net.Conn, error) { return p.dial(ctx, address) },
		IdleConnTimeout: idleTime, DisableCompression: true, MaxResponseHeaderBytes: maxHeader,
	}
	quiet := log.New(io.Discard, "", 0) // clients often hang up
	p.forward = &httputil.ReverseProxy{
		// The server must get the name that was checked.
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.Host = r.Out.URL.Host }, Transport: p.plain, FlushInterval: -1, ErrorLog: quiet,
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { p.fail(w, r.URL.Host, err) },
	}
	p.server = &http.Server{Handler: p, ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader, ErrorLog: quiet}
	return p
}

// Serve serves a listener until Close, which also closes the listener.
func (p *Proxy) Serve(ln net.Listener) { _ = p.server.Serve(netutil.LimitListener(ln, maxConns)) }

func (p *Proxy) Close() Traffic {
	_ = p.server.Close()
	p.mu.Lock()
	p.closed = true
	open := slices.Collect(maps.Keys(p.open))
	p.mu.Unlock()
	for _, c := range open {
		c.Close()
	}
	p.plain.CloseIdleConnections()
	return p.Traffic()
}

// Traffic returns the traffic so far.
func (p *Proxy) Traffic() Traffic {
	p.mu.Lock()
	defer p.mu.Unlock()
	t := Traffic{Sent: p.sent.Load(), Received: p.received.Load()}
	for name, why := range p.refused {
		t.Refused = append(t.Refused, name+render.When(why != "", " ("+why+")"))
	}
	slices.Sort(t.Refused)
	return t
}

// refusal is a reason to refuse; empty if the name is not on the list.
type refusal struct{ why string }

func (r refusal) Error() string { return r.why }

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	port := ""
	switch {
	case r.Method == http.MethodConnect:
	case r.URL.Scheme == "http" && r.URL.Host != "":
		port = "80"
	default:
		http.Error(w, "This is Pawl's proxy: ask it for http://HOST/ or CONNECT HOST:443.", http.StatusBadRequest)
		return
	}
	address, err := p.judge(r.URL.Host, port)
	if err != nil {
		p.fail(w, r.URL.Host, err)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r, address)
		return
	}
	r.URL.Host = strings.TrimSuffix(address, ":80")
	p.forward.ServeHTTP(w, r)
}

// spent returns the refusal for use beyond the download limit.
func (p *Proxy) spent() refusal {
	return refusal{fmt.Sprintf("would exceed the %s that network.download allows", humanize.IBytes(uint64(p.Download)))}
}

// judge returns the canonical form of an allowed name and port. usual is the default port.
func (p *Proxy) judge(asked, usual string) (address string, err error) {
	host, port, err := net.SplitHostPort(asked)
	if err != nil && usual != "" {
		host, port, err = net.SplitHostPort(asked + ":" + usual)
	}
	if err != nil {
		return "", refusal{"is not HOST:PORT"}
	}
	if host, err = policy.CanonicalHost(host); err != nil {
		return "", refusal{err.Error()}
	}
	if !slices.ContainsFunc(p.Allow, func(r policy.HostRule) bool { return r.Allows(host, port) }) {
		return "", refusal{}
	}
	if p.Download > 0 && p.received.Load() > p.Download {
		return "", p.spent()
	}
	return net.JoinHostPort(host, port), nil
}

func (p *Proxy) dial(ctx context.Context, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTime, Resolver: p.Resolver, ControlContext: p.control}
	c, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	up := &counted{Conn: c, proxy: p, name: address}
	if !p.keep(up) {
		up.Close()
		return nil, net.ErrClosed
	}
	return up, nil
}

// keep registers a connection for Close, unless Close was called.
func (p *Proxy) keep(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.open[c] = true
	return true
}

func (p *Proxy) forget(c net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
}

func (p *Proxy) fail(w http.ResponseWriter, asked string, err error) {
	if r, ok := errors.AsType[refusal](err); ok {
		name := p.note(asked, r)
		message := fmt.Sprintf("Pawl refuses %s: it is not in %s of the configuration.", name, p.Where)
		if r.why != "" {
			message = fmt.Sprintf("Pawl refuses %s: it %s.", name, r.why)
		}
		http.Error(w, message, http.StatusForbidden)
		return
	}
	http.Error(w, fmt.Sprintf("Pawl could not reach %s: %v", named(asked), err), http.StatusBadGateway)
}

// note records a refusal and returns the name in printable form.
func (p *Proxy) note(asked string, r refusal) string {
	name := named(asked)
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.refused[name]; known || len(p.refused) < maxRefused {
		p.refused[name] = r.why
	}
	return name
}

// named returns a requested name in printable form: a program may ask for anything.
func named(asked string) string {
	if host, port, err := net.SplitHostPort(asked); err == nil {
		if host, err = policy.CanonicalHost(host); err == nil && len(port) <= 5 {
			asked = host + ":" + port
		}
	} else if host, err := policy.CanonicalHost(asked); err == nil {
		asked = host + ":80"
	}
	quoted := strconv.QuoteToASCII(asked)
	return render.Line(quoted[1:len(quoted)-1], maxName)
}

// counted counts the bytes of a connection to a host.
type counted struct {
	net.Conn
	proxy *Proxy
	name  string // as HOST:PORT
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if got := c.proxy.received.Add(int64(n)); c.proxy.Download > 0 && got > c.proxy.Download {
		c.proxy.note(c.name, c.proxy.spent())
		return 0, c.proxy.spent()
	}
	return n, err
}

func (c *counted) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.proxy.sent.Add(int64(n))
	return n, err
}

func (c *counted) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }

func (c *counted) Close() error {
	c.proxy.forget(c)
	return c.Conn.Close()
}
