package web

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"golang.org/x/sys/unix"
)

// maxConnections is how many a listener has open at a time, fewer where the process may have few files. Each costs
// some 12 KiB.
const maxConnections = 2048

// connections closes one where there would be too many: of an address that has more than a quarter of them, if there
// is one, and otherwise of all, that which has gone longest without beginning or ending a request. So who opens many
// and sends nothing loses its own, and who comes with a request is let in. Addresses that webhooks with a signature
// came from keep theirs while others can give way.
type connections struct {
	most int

	mu    sync.Mutex
	open  map[net.Conn]*list.Element // of order
	order *list.List                 // of *connection, the one that is quiet for longest first
	from  map[netip.Addr]int
	many  int                   // addresses that have more than a quarter
	good  func(netip.Addr) bool // nil for none
}

type connection struct {
	net.Conn
	from netip.Addr
}

func newConnections(good func(netip.Addr) bool) *connections {
	most := maxConnections
	var files unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &files); err == nil {
		most = int(min(uint64(most), max(files.Cur/4, 16)))
	}
	return &connections{good: good, most: most, open: map[net.Conn]*list.Element{}, order: list.New(), from: map[netip.Addr]int{}}
}

// changed is a http.Server.ConnState.
func (c *connections) changed(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.open[conn]
	switch state {
	case http.StateNew:
		from := client(address(conn.RemoteAddr().String()))
		c.open[conn] = c.order.PushBack(&connection{conn, from})
		if c.from[from]++; c.from[from] == c.most/4+1 {
			c.many++
		}
		if c.order.Len() > c.most {
			// Its reader ends and says so here by StateClosed.
			_ = c.quiet().Close()
		}
	case http.StateActive, http.StateIdle:
		if known != nil {
			c.order.MoveToBack(known)
		}
	case http.StateClosed, http.StateHijacked:
		c.forget(known)
	}
}

// quiet takes the connection out that is to be closed: the first in order of an address that has many and is not good,
// else of one that is not good, else of any. All are walked through only where an address has many, since this is done for
// each that comes while there are too many.
func (c *connections) quiet() net.Conn {
	bad := func(from netip.Addr) bool { return c.good == nil || !c.good(from) }
	rules := []func(from netip.Addr) bool{
		func(from netip.Addr) bool { return c.from[from] > c.most/4 && bad(from) }, bad, func(netip.Addr) bool { return true },
	}
	if c.many == 0 {
		rules = rules[1:]
	}
	for _, gives := range rules {
		for e := c.order.Front(); e != nil; e = e.Next() {
			if one := e.Value.(*connection); gives(one.from) {
				c.forget(e)
				return one.Conn
			}
		}
	}
	return nil // not reached: the one that came is in order
}

func (c *connections) forget(e *list.Element) {
	if e == nil {
		return
	}
	conn := c.order.Remove(e).(*connection)
	delete(c.open, conn.Conn)
	switch c.from[conn.from]--; c.from[conn.from] {
	case c.most / 4:
		c.many--
	case 0:
		delete(c.from, conn.from)
	}
}
