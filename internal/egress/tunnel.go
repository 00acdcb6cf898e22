package egress

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// helloTime limits the wait for a client's first TLS message, and maxHello limits its bytes.
const (
	helloTime = 10 * time.Second
	maxHello  = 64 << 10
)

// tunnel connects a client to an allowed host, after a TLS ClientHello for the same name.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, address string) {
	up, err := p.dial(r.Context(), address)
	if err != nil {
		p.fail(w, address, err)
		return
	}
	defer up.Close()
	c, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		p.fail(w, address, err)
		return
	}
	defer c.Close()
	if !p.keep(c) {
		return
	}
	defer p.forget(c)
	if _, err := io.WriteString(c, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	_ = c.SetReadDeadline(time.Now().Add(helloTime)) // fails only on a closed connection
	hello, name := greeting(buffered)
	host, _, _ := net.SplitHostPort(address)
	if strings.ToLower(name) != host {
		why := "has a tunnel without TLS for this name"
		if name != "" {
			why = "has a tunnel with TLS for another name, " + named(name)
		}
		p.note(address, refusal{why})
		return
	}
	_ = c.SetReadDeadline(time.Time{})
	if _, err := up.Write(hello); err != nil {
		return
	}
	done := make(chan bool)
	go func() {
		pass(up, buffered)
		done <- true
	}()
	pass(c, up)
	<-done
}

// pass copies from one side to the other, and then closes the other for writing. After a failure it closes both sides.
func pass(to io.Writer, from io.Reader) {
	_, err := io.Copy(to, from)
	if half, ok := to.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite()
		return
	}
	for _, side := range []any{to, from} {
		if c, ok := side.(io.Closer); ok {
			c.Close()
		}
	}
}

var errRead = errors.New("read")

// greeting reads the first TLS message, and returns it with its server name, which may be empty.
func greeting(from io.Reader) (read []byte, name string) {
	var kept bytes.Buffer
	server := tls.Server(deaf{io.TeeReader(io.LimitReader(from, maxHello), &kept)}, &tls.Config{
		GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
			name = h.ServerName
			return nil, errRead
		},
	})
	_ = server.Handshake() // fails with errRead, or on other data
	return kept.Bytes(), name
}

type deaf struct{ io.Reader }

func (deaf) Write(b []byte) (int, error)      { return len(b), nil }
func (deaf) Close() error                     { return nil }
func (deaf) LocalAddr() net.Addr              { return nil }
func (deaf) RemoteAddr() net.Addr             { return nil }
func (deaf) SetDeadline(time.Time) error      { return nil }
func (deaf) SetReadDeadline(time.Time) error  { return nil }
func (deaf) SetWriteDeadline(time.Time) error { return nil }
