package postgres

import (
	"net"
	"testing"

	"golang.org/x/sys/unix"
)

// The kernel must end a connection whose peer is gone, before and after data is sent.
func TestKernelEndsConnectionsWithoutAPeer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := dialer().DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for option, want := range map[string][3]int{
		"keepalive":          {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
		"seconds until then": {unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 10},
		"user timeout in ms": {unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 10_000},
	} {
		err := raw.Control(func(fd uintptr) {
			if got, err := unix.GetsockoptInt(int(fd), want[0], want[1]); err != nil || got != want[2] {
				t.Errorf("%s: %d, %v, want %d", option, got, err, want[2])
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}
