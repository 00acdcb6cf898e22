package server_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/egress/egresstest"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// inward maps hostile names below evil.example.com to the addresses they resolve to. The operator allowed the names.
var inward = map[string]string{
	"metadata": "169.254.169.254", "mapped": "::ffff:127.0.0.2", "nat64": "64:ff9b::7f00:2", "local-nat64": "64:ff9b:1::7f00:2", "sixtofour": "2002:7f00:2::1",
	"teredo": "2001:0:7f00:2::1", "compatible": "::127.0.0.2", "loopback": "::1", "unique-local": "fd00::1",
}

// literals are addresses for which the agent requests a tunnel from the proxy.
var literals = []string{
	"127.0.0.2", "0x7f000002", "2130706434", "0177.0.0.2", "[::1]", "[::ffff:127.0.0.2]", "[64:ff9b::7f00:2]", "[2002:7f00:2::1]",
}

// forbidden is a server at 127.0.0.2 that no attack may reach. An allowed server has the same port at 127.0.0.1.
type forbidden struct {
	port    string
	rebound atomic.Bool // whether rebound.evil.example.com now resolves to a private address
}

func newForbidden(t *testing.T) *forbidden {
	t.Helper()
	f := &forbidden{}
	listed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		switch q.URL.Path {
		case "/redirect":
			http.Redirect(w, q, "http://127.0.0.2:"+f.port+"/", http.StatusFound)
		case "/rebind":
			f.rebound.Store(true)
			w.Header().Set("Connection", "close")
		}
		fmt.Fprintln(w, "the listed server")
	}))
	t.Cleanup(listed.Close)
	_, f.port, _ = net.SplitHostPort(listed.Listener.Addr().String())
	ln, err := net.Listen("tcp", "127.0.0.2:"+f.port)
	if err != nil {
		t.Fatal(err)
	}
	inside := &http.Server{Handler: http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		t.Errorf("%s %s reached the private server", q.Method, q.Host)
	})}
	go inside.Serve(ln)
	t.Cleanup(func() { inside.Close() })
	return f
}

func (f *forbidden) lookup(name string) []netip.Addr {
	first, rest, _ := strings.Cut(name, ".")
	switch {
	case rest != "evil.example.com":
		return nil
	case first == "listed", first == "rebound" && !f.rebound.Load():
		return []netip.Addr{netip.MustParseAddr("127.0.0.1")}
	case first == "rebound":
		return []netip.Addr{netip.MustParseAddr("127.0.0.2")}
	}
	ip, err := netip.ParseAddr(inward[first])
	if err != nil {
		return nil
	}
	return []netip.Addr{ip}
}

// script tries everything from inside an attempt: each name with a request and a tunnel, each address with a tunnel.
func (f *forbidden) script() string {
	var b strings.Builder
	b.WriteString(`cat > /dev/null
get() { printf '%s: ' "$1"; shift; echo $(curl -sS -m 20 "$@" 2>&1); }
connect() { printf '%s: ' "$1"; echo $(bash -c 'exec 3<>/dev/tcp/127.0.0.1/${http_proxy##*:}
	printf "CONNECT %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" "$0" >&3; timeout 20 cat <&3' "$1" 2>&1 | tr -d '\r'); }
{
`)
	at := func(name string) string { return name + ".evil.example.com:" + f.port }
	fmt.Fprintf(&b, "get listed http://%s/\nget redirect -L http://%[1]s/redirect\n", at("listed"))
	fmt.Fprintf(&b, "get before http://%s/rebind\nget rebound http://%[1]s/\nconnect %[1]s\n", at("rebound"))
	for name := range inward {
		fmt.Fprintf(&b, "get %s http://%s/\nconnect %[2]s\n", name, at(name))
	}
	for _, literal := range literals {
		fmt.Fprintf(&b, "connect %s:%s\n", literal, f.port)
	}
	b.WriteString("} > seen.txt\n")
	return b.String()
}

// This test is not parallel: it changes the resolver of this process, which the server uses.
func TestAttemptReachesNoPrivateAddress(t *testing.T) {
	testrig.Sandboxed(t)
	f := newForbidden(t)
	net.DefaultResolver.PreferGo, net.DefaultResolver.Dial = true, egresstest.Dialer(t, f.lookup)
	t.Cleanup(func() { net.DefaultResolver.PreferGo, net.DefaultResolver.Dial = false, nil })
	r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: testrig.AllChecks})
	r.Agent(f.script(), "")
	r.Config += fmt.Sprintf("sandbox: {mode: auto}\nnetwork: {agent: [\"*.evil.example.com:%s\"], private: [127.0.0.1/32]}\n", f.port)
	r.Start()
	n := r.Solve("Look around", "Please look around.")
	s := r.Ending(n)
	if s.State != "done" {
		t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "seen.txt")
	r.Must(err)
	f.judge(t, text, r.State(n).Attempts[0].Receipt)
	summary := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl").Summary
	if !strings.Contains(summary, "- refused: `") || !strings.Contains(summary, "allow it in `network.agent`") {
		t.Errorf("the check run contains\n%s", summary)
	}
}

// judge checks what the agent saw, and that the receipt names every refusal.
func (f *forbidden) judge(t *testing.T, text string, receipt policy.Receipt) {
	t.Helper()
	seen := map[string]string{}
	for line := range strings.Lines(text) {
		asked, answer, _ := strings.Cut(strings.TrimSpace(line), ": ")
		seen[asked] = answer
	}
	for _, allowed := range []string{"listed", "before"} {
		if seen[allowed] != "the listed server" {
			t.Errorf("%s: %q", allowed, seen[allowed])
		}
	}
	name := func(name string) string { return name + ".evil.example.com:" + f.port }
	refused := []string{"redirect", "rebound", name("rebound")}
	for first := range inward {
		refused = append(refused, first, name(first))
	}
	for _, literal := range literals {
		refused = append(refused, literal+":"+f.port)
	}
	for _, asked := range refused {
		if !strings.Contains(seen[asked], "Pawl refuses ") {
			t.Errorf("%s: %q", asked, seen[asked])
		}
		if strings.Contains(asked, ":") && !slices.ContainsFunc(receipt.RefusedHosts, func(r string) bool { return strings.HasPrefix(r, asked+" (") }) {
			t.Errorf("the receipt does not name %s: %q", asked, receipt.RefusedHosts)
		}
	}
}
