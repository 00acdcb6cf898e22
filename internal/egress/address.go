package egress

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"syscall"
)

// control checks an address right before the connection.
func (p *Proxy) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	ip := a.Addr().Unmap()
	if slices.ContainsFunc(p.Private, func(n netip.Prefix) bool { return n.Contains(ip) }) {
		return nil
	}
	if !public(ip) || p.own(ip) {
		return refusal{fmt.Sprintf("leads to %s, which is not a public address; the operator can name it in network.private", ip)}
	}
	return nil
}

// notPublic lists IPv4 networks that IANA's registry of special-purpose addresses does not call globally reachable,
// 6to4 relays, and Azure's host address. The three documentation networks are omitted: they lead nowhere.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("127.0.0.0/8"),
	netip.MustParsePrefix("168.63.129.16/32"), netip.MustParsePrefix("169.254.0.0/16"), netip.MustParsePrefix("172.16.0.0/12"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("192.168.0.0/16"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("224.0.0.0/3"),
}

// In IPv6, only global unicast is public. IANA's protocol assignments, such as Teredo, and 6to4 are not public, because
// they hide an IPv4 address.
var (
	globalUnicast = netip.MustParsePrefix("2000::/3")
	notPublic6    = []netip.Prefix{netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2002::/16")}
)

func public(ip netip.Addr) bool {
	in := func(n netip.Prefix) bool { return n.Contains(ip) }
	if ip.Is4() {
		return !slices.ContainsFunc(notPublic, in)
	}
	return ip.Zone() == "" && in(globalUnicast) && !slices.ContainsFunc(notPublic6, in)
}

func own(ip netip.Addr) bool {
	list, err := net.InterfaceAddrs()
	return err != nil || slices.ContainsFunc(list, func(a net.Addr) bool {
		n, ok := a.(*net.IPNet)
		if !ok {
			return false
		}
		other, _ := netip.AddrFromSlice(n.IP)
		return other.Unmap() == ip
	})
}
