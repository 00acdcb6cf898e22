package web

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

// wire is a connection from an address that remembers whether it was closed.
type wire struct {
	net.Conn
	from   string
	closed bool
}

func (w *wire) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(w.from), Port: 1} }
func (w *wire) Close() error         { w.closed = true; return nil }

func TestTheQuietestConnectionOfWhoHasMostGivesWay(t *testing.T) {
	c := newConnections(nil)
	c.most = 8
	opens := func(from string) *wire {
		w := &wire{from: from}
		c.changed(w, http.StateNew)
		return w
	}
	quiet := opens("192.0.2.1")
	var many []*wire
	for range 7 {
		many = append(many, opens("2001:db8:0:1::"+string(rune('1'+len(many))))) // one network
	}
	c.changed(many[0], http.StateActive)
	next := opens("192.0.2.2")
	if quiet.closed || many[0].closed || next.closed || !many[1].closed {
		t.Errorf("closed: quiet %t, active %t, next %t, the quietest of many %t; want the last only", quiet.closed, many[0].closed, next.closed, many[1].closed)
	}
	c.changed(many[1], http.StateClosed)
	for i := range 20 { // nobody has many any more
		opens(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String())
	}
	if !quiet.closed || len(c.open) != c.most || c.order.Len() != c.most {
		t.Errorf("of %d connections the one that is quiet for longest is closed: %t", len(c.open), quiet.closed)
	}
	for conn := range c.open {
		c.changed(conn, http.StateClosed)
	}
	if len(c.open) != 0 || len(c.from) != 0 || c.order.Len() != 0 {
		t.Errorf("%d connections, %d addresses, %d in order are left; want none", len(c.open), len(c.from), c.order.Len())
	}
}

func TestOnlyProxiesAreBelievedWhoAsked(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32"), netip.MustParsePrefix("10.0.0.0/8")}
	github := []netip.Prefix{netip.MustParsePrefix("192.30.252.0/22"), netip.MustParsePrefix("2a0a:a440::/29")}
	known := github
	for _, c := range []struct {
		name, remote string
		forwarded    []string
		proxies      []netip.Prefix
		want         int
		counted      string
	}{
		{"GitHub itself", "192.30.252.7:1", nil, proxies, 200, "192.30.252.7"},
		{"GitHub by IPv6", "[2a0a:a440::5]:1", nil, proxies, 200, "2a0a:a440::"},
		{"GitHub, mapped", "[::ffff:192.30.252.7]:1", nil, proxies, 200, "192.30.252.7"},
		{"somebody", "198.51.100.1:1", nil, proxies, 403, ""},
		{"somebody who says GitHub", "198.51.100.1:1", []string{"192.30.252.7"}, proxies, 403, ""},
		{"GitHub through a proxy", "127.0.0.1:1", []string{"192.30.252.7"}, proxies, 200, "192.30.252.7"},
		{"GitHub through two", "127.0.0.1:1", []string{"192.30.252.7, 10.1.2.3"}, proxies, 200, "192.30.252.7"},
		{"GitHub through two, in two headers", "127.0.0.1:1", []string{"192.30.252.7", "10.1.2.3"}, proxies, 200, "192.30.252.7"},
		{"somebody through a proxy", "127.0.0.1:1", []string{"198.51.100.1"}, proxies, 403, ""},
		{"somebody who wrote GitHub before", "127.0.0.1:1", []string{"192.30.252.7, 198.51.100.1"}, proxies, 403, ""},
		{"somebody who wrote GitHub and a proxy before", "127.0.0.1:1", []string{"192.30.252.7, 10.0.0.1, 198.51.100.1"}, proxies, 403, ""},
		{"what is no address", "127.0.0.1:1", []string{"192.30.252.7, unknown"}, proxies, 403, ""},
		{"a proxy that says nothing", "127.0.0.1:1", nil, proxies, 403, ""},
		{"no proxies", "127.0.0.1:1", []string{"192.30.252.7"}, nil, 403, ""},
	} {
		var counted string
		h := behind(c.proxies, fromGitHub(func() []netip.Prefix { return known }, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { counted = r.RemoteAddr })))
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)
		r.RemoteAddr, r.Header["X-Forwarded-For"] = c.remote, c.forwarded
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want || counted != c.counted {
			t.Errorf("%s: %d, counted as %q; want %d, %q", c.name, w.Code, counted, c.want, c.counted)
		}
	}
	known = nil
	w := httptest.NewRecorder()
	if fromGitHub(func() []netip.Prefix { return known }, http.HandlerFunc(alive)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), "POST", "/", nil)); w.Code != 200 {
		t.Errorf("before GitHub has said it: %d", w.Code)
	}
}

func TestWhoSentASignedWebhookKeepsItsConnections(t *testing.T) {
	c := newConnections(func(from netip.Addr) bool { return from == netip.MustParseAddr("192.0.2.1") })
	c.most = 4
	opens := func(from string) *wire {
		w := &wire{from: from}
		c.changed(w, http.StateNew)
		return w
	}
	good, bad := opens("192.0.2.1"), opens("192.0.2.2")
	for i := range 20 {
		opens(netip.AddrFrom4([4]byte{198, 51, 100, byte(i)}).String())
	}
	if good.closed || !bad.closed {
		t.Errorf("closed: the good one %t, the bad one %t", good.closed, bad.closed)
	}
	var all []*wire
	for range 5 { // where all are good, the limit holds all the same
		all = append(all, opens("192.0.2.1"))
	}
	if !good.closed || all[4].closed || len(c.open) != c.most {
		t.Errorf("of %d connections the oldest is closed: %t", len(c.open), good.closed)
	}
}
