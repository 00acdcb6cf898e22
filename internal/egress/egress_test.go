package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/egress/egresstest"
	"github.com/pawlbot/pawl/policy"
)

// names returns a resolver that knows only these names.
func names(t *testing.T, known map[string]string) *net.Resolver {
	t.Helper()
	return &net.Resolver{PreferGo: true, Dial: egresstest.Dialer(t, func(name string) []netip.Addr {
		ip, err := netip.ParseAddr(known[name])
		if err != nil {
			return nil
		}
		return []netip.Addr{ip}
	})}
}

// stand is a proxy for two local servers, both called example.com: one with TLS, one with plain HTTP.
type stand struct {
	*Proxy
	address    string // the proxy's
	tls, plain *httptest.Server
	roots      *x509.CertPool
	tlsPort    string
	plainPort  string
}

func newStand(t *testing.T, known map[string]string, allow ...string) *stand {
	t.Helper()
	answer := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s %s", r.Method, r.Host, body)
	})
	s := &stand{tls: httptest.NewTLSServer(answer), plain: httptest.NewServer(answer), roots: x509.NewCertPool()}
	t.Cleanup(s.tls.Close)
	t.Cleanup(s.plain.Close)
	s.roots.AddCert(s.tls.Certificate()) // it is valid for example.com, too
	_, s.tlsPort, _ = net.SplitHostPort(s.tls.Listener.Addr().String())
	_, s.plainPort, _ = net.SplitHostPort(s.plain.Listener.Addr().String())
	o := Options{Where: "network.agent", Resolver: names(t, known), Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}
	for _, text := range allow {
		var r policy.HostRule
		if err := r.UnmarshalText([]byte(strings.NewReplacer("TLS", s.tlsPort, "PLAIN", s.plainPort).Replace(text))); err != nil {
			t.Fatal(err)
		}
		o.Allow = append(o.Allow, r)
	}
	s.Proxy = New(o)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = ln.Addr().String()
	go s.Serve(ln)
	t.Cleanup(func() { s.Close() })
	return s
}

// client returns a client that uses the proxy. inside is the server name in TLS; empty means the URL's host.
func (s *stand) client(inside string) *http.Client {
	return &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		Proxy:           http.ProxyURL(&url.URL{Scheme: "http", Host: s.address}),
		TLSClientConfig: &tls.Config{RootCAs: s.roots, ServerName: inside, InsecureSkipVerify: inside != ""},
	}}
}

// raw sends a text to the proxy and reads the answer's first line and body.
func (s *stand) raw(t *testing.T, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	io.WriteString(c, text)
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(r.Body, 500))
	return r.Status + " " + string(body)
}

func get(t *testing.T, c *http.Client, url string) string {
	t.Helper()
	r, err := c.Get(url)
	if err != nil {
		return err.Error()
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return fmt.Sprintf("%d %s", r.StatusCode, b)
}

func TestListedHostIsReachedAndItsBytesCounted(t *testing.T) {
	s := newStand(t, map[string]string{"example.com": "127.0.0.1"}, "example.com:TLS", "example.com:PLAIN")
	c := s.client("")
	if got := get(t, c, "https://example.com:"+s.tlsPort+"/"); got != "200 GET example.com:"+s.tlsPort+" " {
		t.Errorf("over TLS: %s", got)
	}
	if got := get(t, c, "http://EXAMPLE.com:"+s.plainPort+"/"); got != "200 GET example.com:"+s.plainPort+" " {
		t.Errorf("plain: %s", got)
	}
	r, err := c.Post("http://example.com:"+s.plainPort+"/", "text/plain", strings.NewReader(strings.Repeat("x", 100_000)))
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, r.Body)
	r.Body.Close()
	c.CloseIdleConnections()
	got := s.Close()
	if got.Sent < 100_000 || got.Received < 100_000 || len(got.Refused) > 0 {
		t.Errorf("counted %+v", got)
	}
}

func TestDownloadIsLimited(t *testing.T) {
	for _, bounded := range []bool{false, true} {
		s := newStand(t, map[string]string{"example.com": "127.0.0.1"}, "example.com:TLS", "example.com:PLAIN")
		if bounded {
			s.Download = 300_000
		}
		large := strings.Repeat("x", 100_000)
		for i := range 5 { // the server answers with what it gets
			c := s.client("")
			r, err := c.Post([]string{"https://example.com:" + s.tlsPort, "http://example.com:" + s.plainPort}[i%2]+"/", "text/plain", strings.NewReader(large))
			body, whole := []byte(nil), false
			if err == nil {
				body, err = io.ReadAll(r.Body)
				r.Body.Close()
				whole = r.StatusCode == http.StatusOK && strings.Contains(string(body), large)
			}
			if want := !bounded || i < 2; whole != want {
				t.Errorf("bounded %t: answer %d has %d bytes, %v", bounded, i+1, len(body), err)
			}
			c.CloseIdleConnections()
		}
		got := s.Close()
		if reported := slices.ContainsFunc(got.Refused, func(r string) bool {
			return strings.Contains(r, " (would exceed the 293 KiB that network.download allows)")
		}); reported != bounded || bounded && got.Received > 400_000 {
			t.Errorf("bounded %t: %+v", bounded, got)
		}
	}
}

func TestUnlistedHostIsRefusedWithAMessage(t *testing.T) {
	s := newStand(t, map[string]string{"example.com": "127.0.0.1", "other.example.com": "127.0.0.1"}, "example.com:TLS", "example.com:PLAIN", "*.sub.example.com:TLS")
	for _, target := range []string{
		"other.example.com:" + s.tlsPort, "example.com:1", "example.com.:" + s.tlsPort, "127.0.0.1:" + s.tlsPort, "127.1:" + s.tlsPort, "2130706433:" + s.tlsPort,
		"0x7f000001:" + s.tlsPort, "[::1]:" + s.tlsPort, "[::ffff:127.0.0.1]:" + s.tlsPort, "localhost:" + s.tlsPort, "sub.example.com:" + s.tlsPort,
		"evilsub.example.com:" + s.tlsPort, "example.com%00.evil.org:" + s.tlsPort, "ex\u0430mple.com:" + s.tlsPort, "example.com:0" + s.tlsPort, "a.sub.example.com.evil.org:" + s.tlsPort,
	} {
		got := s.raw(t, "CONNECT "+target+" HTTP/1.1\r\nHost: example.com:"+s.tlsPort+"\r\n\r\n")
		if !strings.HasPrefix(got, "403 Forbidden Pawl refuses ") && !strings.HasPrefix(got, "400 Bad Request") {
			t.Errorf("%s: %s", target, got)
		}
	}
	if got := s.raw(t, "CONNECT example.com\x00.evil.org:443 HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "40") {
		t.Errorf("a NUL: %s", got)
	}
	got := s.raw(t, "CONNECT other.example.com:443 HTTP/1.1\r\n\r\n")
	if !strings.Contains(got, "Pawl refuses other.example.com:443: it is not in network.agent of the configuration.") {
		t.Errorf("the sentence is %q", got)
	}
	if r := s.Close().Refused; !slices.Contains(r, "other.example.com:443") || !slices.Contains(r, "127.1:"+s.tlsPort+" (is an address; only names are let through)") {
		t.Errorf("refused: %q", r)
	}
}

func TestIPAddressesAreRefused(t *testing.T) {
	s := newStand(t, nil, "*.example.com:443")
	for _, target := range []string{
		"[::ffff:7f00:1]:443", "[64:ff9b::7f00:1]:443", "[64:ff9b:1::7f00:1]:443", "[2002:7f00:1::]:443", "[::127.0.0.1]:443", "[fe80::1%25lo]:443",
		"0177.0.0.1:443", "127.0.1:443", "017700000001:443", "1.1.1.1:443", "[2606:4700::1111]:443",
	} {
		got := s.raw(t, "CONNECT "+target+" HTTP/1.1\r\n\r\n")
		if !strings.HasPrefix(got, "403 Forbidden Pawl refuses ") && !strings.HasPrefix(got, "400 Bad Request") {
			t.Errorf("%s: %s", target, got)
		}
	}
}

// Each request on a kept connection may name another host, in its URL or in its header.
func TestEachPlainRequestIsChecked(t *testing.T) {
	s := newStand(t, map[string]string{"example.com": "127.0.0.1", "other.example.com": "127.0.0.1"}, "example.com:PLAIN")
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	in := bufio.NewReader(c)
	for _, step := range []struct{ host, want string }{
		{"example.com", "200"}, {"other.example.com", "403"}, {"example.com", "200"},
	} {
		fmt.Fprintf(c, "GET http://%s:%s/ HTTP/1.1\r\nHost: other.example.com\r\n\r\n", step.host, s.plainPort)
		r, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		if !strings.HasPrefix(r.Status, step.want) || strings.Contains(string(body), "GET other") {
			t.Errorf("%s: %s %s", step.host, r.Status, body)
		}
	}
	for _, text := range []string{
		"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n", "GET ftp://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
	} {
		if got := s.raw(t, text); !strings.HasPrefix(got, "400") {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestTunnelNameMustMatchTheRequest(t *testing.T) {
	s := newStand(t, map[string]string{"example.com": "127.0.0.1"}, "example.com:TLS")
	for inside, want := range map[string]bool{"example.com": true, "EXAMPLE.com": true, "other.example.com": false, "example.com.evil.org": false} {
		got := get(t, s.client(inside), "https://example.com:"+s.tlsPort+"/")
		if strings.HasPrefix(got, "200") != want {
			t.Errorf("TLS name %s: %s", inside, got)
		}
	}
	for _, first := range []string{"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n", "SSH-2.0-x\r\n", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00"} {
		got := s.raw(t, "CONNECT example.com:"+s.tlsPort+" HTTP/1.1\r\n\r\n"+first)
		if !strings.HasPrefix(got, "200 Connection established") || strings.Contains(got, "HTTP/1") {
			t.Errorf("%q: %s", first, got)
		}
	}
	want := []string{
		"example.com:" + s.tlsPort + " (has a tunnel without TLS for this name)",
	}
	if got := s.Close().Refused; !slices.Equal(got, want) {
		t.Errorf("refused %q, want %q", got, want)
	}
}

func TestOnlyPublicAddressesAreReached(t *testing.T) {
	for ip, want := range map[string]bool{
		"1.1.1.1": true, "140.82.121.3": true, "2606:4700::1111": true, "2a00::1": true, "192.0.1.1": true, "100.128.0.1": true, "172.32.0.1": true,
		"0.0.0.0": false, "0.1.2.3": false, "10.0.0.1": false, "100.64.0.1": false, "100.100.100.200": false, "127.0.0.1": false, "127.255.0.1": false, "169.254.169.254": false,
		"168.63.129.16": false, "172.16.0.1": false, "192.0.0.192": false, "192.88.99.1": false, "192.168.1.1": false, "198.18.0.1": false, "198.19.255.255": false, "224.0.0.1": false,
		"240.0.0.1": false, "255.255.255.255": false, "::": false, "::1": false, "::ffff:10.0.0.1": false, "::ffff:127.0.0.1": false, "::127.0.0.1": false, "64:ff9b::a00:1": false,
		"64:ff9b:1::a00:1": false, "100::1": false, "2001::1": false, "2001:0:4136:e378:8000:63bf:3fff:fdd2": false, "2001:10::1": false, "2002:7f00:1::": false,
		"fc00::1": false, "fd00:ec2::254": false, "fe80::1": false, "fe80::1%lo": false, "fec0::1": false, "ff02::1": false,
	} {
		if got := public(netip.MustParseAddr(ip).Unmap()); got != want {
			t.Errorf("%s is public: %t", ip, got)
		}
	}
}

// The owner of a listed name makes it resolve to this machine or its network.
func TestNameOfAPrivateAddressIsRefused(t *testing.T) {
	known := map[string]string{"nat64.example.com": "64:ff9b::a9fe:a9fe", "sixtofour.example.com": "2002:a9fe:a9fe::1", "meta.example.com": "169.254.169.254", "six.example.com": "::1", "mapped.example.com": "::ffff:10.1.2.3", "lan.example.com": "10.1.2.3", "zero.example.com": "0.0.0.0"}
	s := newStand(t, known, "*.example.com:TLS", "*.example.com:PLAIN")
	for name := range known {
		for _, request := range []string{"CONNECT " + name + ":" + s.tlsPort, "GET http://" + name + ":" + s.plainPort + "/"} {
			if got := s.raw(t, request+" HTTP/1.1\r\nHost: x\r\n\r\n"); !strings.HasPrefix(got, "403") || !strings.Contains(got, "which is not a public address; the operator can name it in network.private") {
				t.Errorf("%s: %s", request, got)
			}
		}
	}
	if got := s.raw(t, "CONNECT gone.example.com:"+s.tlsPort+" HTTP/1.1\r\n\r\n"); !strings.HasPrefix(got, "502") {
		t.Errorf("a name that does not exist: %s", got)
	}
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		ip, _ := netip.AddrFromSlice(a.(*net.IPNet).IP)
		if !own(ip.Unmap()) {
			t.Errorf("%s is not taken for this machine's address", ip)
		}
	}
	if own(netip.MustParseAddr("1.1.1.1")) {
		t.Error("1.1.1.1 is taken for this machine's address")
	}
}

// The owner of a listed name changes its address between two requests, or redirects to a private address.
func TestReboundOrRedirectedNameReachesNoPrivateAddress(t *testing.T) {
	known := map[string]string{"example.com": "127.0.0.1"}
	s := newStand(t, known, "example.com:TLS", "example.com:PLAIN")
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the private address was reached") }))
	t.Cleanup(inside.Close)
	s.plain.Config.Handler = http.RedirectHandler(strings.Replace(inside.URL, "127.0.0.1", "127.0.0.2", 1), http.StatusFound)
	at := "http://example.com:" + s.plainPort + "/"
	if got := get(t, s.client(""), at); !strings.HasPrefix(got, "403") {
		t.Errorf("a redirect to a private address: %s", got)
	}
	s.plain.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Connection", "close") })
	if got := get(t, s.client(""), at); !strings.HasPrefix(got, "200") {
		t.Fatalf("before the name is rebound: %s", got)
	}
	resolver := names(t, map[string]string{"example.com": "169.254.169.254"})
	s.Resolver.Dial = resolver.Dial
	if got := get(t, s.client(""), at); !strings.HasPrefix(got, "403") || !strings.Contains(got, "169.254.169.254, which is not a public address") {
		t.Errorf("after the name is rebound: %s", got)
	}
}

func TestThisMachinesPublicAddressIsRefused(t *testing.T) {
	p := New(Options{})
	here := netip.MustParseAddr("140.82.121.3")
	p.own = func(ip netip.Addr) bool { return ip == here }
	for address, refused := range map[string]bool{"140.82.121.3:443": true, "[::ffff:140.82.121.3]:443": true, "140.82.121.4:443": false} {
		if err := p.control(t.Context(), "tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: %v, want a refusal: %t", address, err, refused)
		}
	}
}

func TestRefusalsAreBoundedAndHarmless(t *testing.T) {
	s := newStand(t, nil)
	for i := range 3 * maxRefused {
		s.raw(t, fmt.Sprintf("CONNECT h%d.example.com:443 HTTP/1.1\r\n\r\n", i))
	}
	s.fail(httptest.NewRecorder(), "\x1b[31m<!--`@all\n:443"+strings.Repeat("x", 1000), refusal{})
	s.refused = map[string]string{}
	s.fail(httptest.NewRecorder(), "\x1b[31m\n\u202e"+strings.Repeat("x", 1000), refusal{})
	for _, name := range s.Close().Refused {
		if len(name) > maxName+10 || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r > '~' && r != '…' }) {
			t.Errorf("%q", name)
		}
	}
}

// Close also ends tunnels with a stalled or endless client or server.
func TestCloseEndsOpenTunnels(t *testing.T) {
	s := newStand(t, map[string]string{"example.com": "127.0.0.1"}, "example.com:TLS")
	c, err := net.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintf(c, "CONNECT example.com:%s HTTP/1.1\r\n\r\n", s.tlsPort)
	if r, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: "CONNECT"}); err != nil || r.StatusCode != 200 {
		t.Fatal(r, err)
	}
	s.Close()
	c.SetReadDeadline(time.Now().Add(5 * time.Second))
	if _, err := c.Read(make([]byte, 1)); err == nil || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "timeout") {
		t.Errorf("the tunnel is still open: %v", err)
	}
	if _, err := s.dial(t.Context(), "example.com:"+s.tlsPort); !errors.Is(err, net.ErrClosed) {
		t.Errorf("dialing after Close: %v", err)
	}
}

func TestClientVariablesNameTheProxy(t *testing.T) {
	got := map[string]string{}
	for _, v := range Clients("3", []string{"MAVEN_OPTS=-Xmx1g", "A=b=c", "https_proxy=http://host:1"}) {
		name, value, _ := strings.Cut(v, "=")
		got[name] = value
	}
	for name, want := range map[string]string{
		"https_proxy": "http://127.0.0.1:3", "HTTP_PROXY": "http://127.0.0.1:3", "A": "b=c", "NO_PROXY": "localhost,127.0.0.1,::1",
		"MAVEN_OPTS": "-Xmx1g -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=3 -Dhttps.proxyHost=127.0.0.1 -Dhttps.proxyPort=3",
	} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}
