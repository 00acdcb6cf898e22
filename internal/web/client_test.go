package web

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
)

func TestOnlyProxiesSetTheClientAddress(t *testing.T) {
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
		{"GitHub by IPv6", "[2a0a:a440::5]:1", nil, proxies, 200, "2a0a:a440::5"},
		{"GitHub, mapped", "[::ffff:192.30.252.7]:1", nil, proxies, 200, "192.30.252.7"},
		{"somebody", "198.51.100.1:1", nil, proxies, 403, ""},
		{"a client that claims GitHub's address", "198.51.100.1:1", []string{"192.30.252.7"}, proxies, 403, ""},
		{"GitHub through a proxy", "127.0.0.1:1", []string{"192.30.252.7"}, proxies, 200, "192.30.252.7"},
		{"GitHub through two", "127.0.0.1:1", []string{"192.30.252.7, 10.1.2.3"}, proxies, 200, "192.30.252.7"},
		{"GitHub through two, in two headers", "127.0.0.1:1", []string{"192.30.252.7", "10.1.2.3"}, proxies, 200, "192.30.252.7"},
		{"another client through a proxy", "127.0.0.1:1", []string{"198.51.100.1"}, proxies, 403, ""},
		{"a client that prepends GitHub's address", "127.0.0.1:1", []string{"192.30.252.7, 198.51.100.1"}, proxies, 403, ""},
		{"a client that prepends GitHub's and a proxy's address", "127.0.0.1:1", []string{"192.30.252.7, 10.0.0.1, 198.51.100.1"}, proxies, 403, ""},
		{"an invalid address", "127.0.0.1:1", []string{"192.30.252.7, unknown"}, proxies, 403, ""},
		{"a proxy without the header", "127.0.0.1:1", nil, proxies, 403, ""},
		{"no proxies", "127.0.0.1:1", []string{"192.30.252.7"}, nil, 403, ""},
	} {
		var counted string
		h := behind(c.proxies, fromGitHub(func() []netip.Prefix { return known }, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { counted = address(r.RemoteAddr).String() })))
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
		t.Errorf("before GitHub's ranges are known: %d", w.Code)
	}
}
