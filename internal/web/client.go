package web

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// address is the one in the remote address of a connection; the zero Addr where there is none.
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

// behind gives requests that came through one of the proxies the address of who asked the proxy: the last one of
// X-Forwarded-For that is no proxy itself. What stands before it anybody could have written.
func behind(proxies []netip.Prefix, h http.Handler) http.Handler {
	if len(proxies) == 0 {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		said := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		for i := len(said) - 1; i >= 0 && within(proxies, address(r.RemoteAddr)); i-- {
			one := strings.TrimSpace(said[i])
			if _, err := netip.ParseAddr(one); err != nil {
				break
			}
			r.RemoteAddr = net.JoinHostPort(one, "0")
		}
		h.ServeHTTP(w, r)
	})
}

// fromGitHub refuses who asks from elsewhere than GitHub says that its webhooks come from, before anything of the
// body is read. While that is not known nobody is refused: the signature decides in any case.
func fromGitHub(ranges func() []netip.Prefix, h http.Handler) http.Handler {
	if ranges == nil {
		return h
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if known := ranges(); len(known) > 0 && !within(known, address(r.RemoteAddr)) {
			w.Header().Set("Connection", "close")
			plain(w, http.StatusForbidden, "This address is none that GitHub sends webhooks from.")
			return
		}
		h.ServeHTTP(w, r)
	})
}
