package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// address returns the IP address in HOST:PORT, or zero.
func address(remote string) netip.Addr {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		host = remote
	}
	a, _ := netip.ParseAddr(host)
	return a.Unmap().WithZone("")
}

func within(nets []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(nets, func(n netip.Prefix) bool { return n.Contains(a) })
}

// behind replaces a trusted proxy's address with the last address in X-Forwarded-For that is not a trusted proxy.
// Clients can forge earlier addresses.
func behind(proxies []netip.Prefix, h http.Handler) http.Handler {
	if len(proxies) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(hops) - 1; i >= 0 && within(proxies, address(r.RemoteAddr)); i-- {
			hop := strings.TrimSpace(hops[i])
			if _, err := netip.ParseAddr(hop); err != nil {
				break
			}
			r.RemoteAddr = net.JoinHostPort(hop, "0")
		}
		h.ServeHTTP(w, r)
	})
}

// fromGitHub refuses webhooks from foreign addresses before reading the body. It admits all while GitHub's ranges are
// unknown; the signature is always checked.
func fromGitHub(ranges func() []netip.Prefix, h http.Handler) http.Handler {
	if ranges == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if known := ranges(); len(known) > 0 && !within(known, address(r.RemoteAddr)) {
			w.Header().Set("Connection", "close")
			plain(w, http.StatusForbidden, "GitHub sends no webhooks from this address.")
			return
		}
		h.ServeHTTP(w, r)
	})
}
