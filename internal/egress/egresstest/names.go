// Package egresstest has a name server for tests of the network policy.
package egresstest

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"
)

// Dialer starts a name server over UDP, and returns a Dial function for a net.Resolver that uses it. The server calls
// lookup for each question. A name without addresses does not exist.
func Dialer(
	t *testing.T,
	lookup func(name string) []netip.Addr,
) func(ctx context.Context, network, address string) (net.Conn, error) {
	t.Helper()
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Close() })
	go serve(server, lookup)
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", server.LocalAddr().String())
	}
}

func serve(server net.PacketConn, lookup func(name string) []netip.Addr) {
	for b := make([]byte, 4096); ; {
		n, from, err := server.ReadFrom(b)
		if err != nil {
			return
		}
		var m dnsmessage.Message
		if m.Unpack(b[:n]) != nil || len(m.Questions) != 1 {
			continue
		}
		answer(&m, lookup)
		if out, err := m.Pack(); err == nil {
			_, _ = server.WriteTo(out, from) // the resolver asks again
		}
	}
}

func answer(m *dnsmessage.Message, lookup func(name string) []netip.Addr) {
	q := m.Questions[0]
	m.Response, m.Authoritative, m.Additionals = true, true, nil
	known := lookup(strings.TrimSuffix(q.Name.String(), "."))
	if len(known) == 0 {
		m.RCode = dnsmessage.RCodeNameError
	}
	head := dnsmessage.ResourceHeader{Name: q.Name, Type: q.Type, Class: q.Class}
	for _, ip := range known {
		switch {
		case ip.Is4() && q.Type == dnsmessage.TypeA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AResource{A: ip.As4()}})
		case ip.Is6() && q.Type == dnsmessage.TypeAAAA:
			m.Answers = append(m.Answers, dnsmessage.Resource{Header: head, Body: &dnsmessage.AAAAResource{AAAA: ip.As16()}})
		}
	}
}
