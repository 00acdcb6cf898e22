package server

import (
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
)

func TestListenErrors(t *testing.T) {
	for _, row := range []struct {
		key   string
		cause error
		words []string
	}{
		{addressKey, syscall.EADDRINUSE, []string{"server.address: another program listens on 127.0.0.1:80 already", "ss -ltnp 'sport = :80'", "set server.address", "--listen"}},
		{pagesKey, syscall.EADDRINUSE, []string{"server.pages: another program listens", "set server.pages in the configuration to another address"}},
		{addressKey, syscall.EACCES, []string{"a port above 1023", "CAP_NET_BIND_SERVICE"}},
		{addressKey, syscall.EADDRNOTAVAIL, []string{"that this machine has"}},
		{addressKey, errors.New("missing port in address"), []string{"server.address: missing port in address; set server.address"}},
	} {
		err := &ListenError{row.key, "127.0.0.1:80", row.cause}
		for _, words := range row.words {
			if !strings.Contains(err.Error(), words) {
				t.Errorf("%q does not say %q", err, words)
			}
		}
	}
}

func TestTakenPortIsAListenError(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Listen(addressKey, taken.Addr().String())
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), "another program listens on "+taken.Addr().String()) {
		t.Error(err)
	}
}
