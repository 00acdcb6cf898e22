package handlers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/simplelru"
)

// A signature can be checked only when its body is there, and until then anybody may send. So what has arrived is
// bounded, and whoever is slow gives way to whoever comes.
const (
	// maxHeld bounds what has arrived of the bodies that are not answered, in bytes. A body counts as it comes, not as
	// it is announced.
	maxHeld = 64 << 20
	// heldShare is what one address may hold while others need room; an address over it gives way first.
	heldShare = maxHeld / 2
)

// How long a body may take to arrive: bodyGrace, and longer as it comes at leastRate bytes a second, up to bodyTime.
// GitHub gives a whole delivery 10 s (an Enterprise Server 30 s), and sends an ordinary one in one piece.
const (
	bodyGrace = 3 * time.Second
	leastRate = 32 << 10
	bodyTime  = 15 * time.Second
)

var (
	errTooMany = errors.New("too many payloads at the same time")
	// longAgo is a deadline that has passed for whatever is read.
	longAgo = time.Unix(1, 0)
)

// heldBodies are what has arrived of all bodies that are not answered.
type heldBodies struct {
	bodyTime, grace time.Duration

	mu     sync.Mutex
	bodies map[*heldBody]bool // those that still come
	bytes  int64              // of these and of those that have come, without what was dropped
	from   map[string]int64   // the same by address
	good   *simplelru.LRU     // addresses that signed webhooks came from
}

// maxGood is how many addresses are remembered that signed webhooks came from. GitHub uses some dozens.
const maxGood = 256

func newHeldBodies() heldBodies {
	good, err := simplelru.NewLRU(maxGood, nil)
	if err != nil {
		panic(err) // the size is a positive constant
	}
	return heldBodies{bodyTime: bodyTime, grace: bodyGrace, bodies: map[*heldBody]bool{}, from: map[string]int64{}, good: good}
}

// Trusts reports whether signed webhooks came from an address, which gives way last.
func (in *Ingress) Trusts(from netip.Addr) bool {
	in.held.mu.Lock()
	defer in.held.mu.Unlock()
	return in.held.good.Contains(from.String())
}

type heldKey struct{}

// signed remembers that the body of a request had a good signature.
func (h *heldBodies) signed(ctx context.Context) {
	if b, ok := ctx.Value(heldKey{}).(*heldBody); ok {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.good.Add(b.from, nil)
	}
}

// heldBody counts what it reads among what is held. Once it has come whole nothing drops it any more, and only the
// server's own time limit holds, so that the store may take its time.
type heldBody struct {
	io.ReadCloser
	in      *heldBodies
	from    string // its address
	control *http.ResponseController
	began   time.Time

	// in.mu guards these.
	size    int64
	dropped bool
}

// hold begins with a body.
func (h *heldBodies) hold(w http.ResponseWriter, r *http.Request) *heldBody {
	from, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		from = r.RemoteAddr
	}
	b := &heldBody{ReadCloser: http.MaxBytesReader(w, r.Body, MaxPayload), in: h, from: from, control: http.NewResponseController(w), began: time.Now()}
	h.mu.Lock()
	h.bodies[b] = true
	h.mu.Unlock()
	b.extend(0)
	return b
}

// extend gives the body the time that what has come of it is worth. The connection's deadlines go by the system's
// clock; a writer without deadlines is no network connection.
func (b *heldBody) extend(size int64) {
	most := min(b.in.bodyTime, b.in.grace+time.Duration(size)*time.Second/leastRate)
	_ = b.control.SetReadDeadline(b.began.Add(most))
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if !b.in.count(b, int64(n), errors.Is(err, io.EOF)) {
		return 0, errTooMany
	}
	return n, err
}

// count adds what came, gives the rest its time, and drops the slowest until there is room; false where that was b itself.
func (h *heldBodies) count(b *heldBody, n int64, whole bool) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if b.dropped {
		return false
	}
	b.size += n
	h.bytes += n
	h.from[b.from] += n
	for n > 0 && h.bytes > maxHeld && !b.dropped {
		h.drop(h.first(time.Now()))
	}
	switch {
	case b.dropped:
		return false
	case whole:
		delete(h.bodies, b)
		// For the next request on the connection the server sets a deadline of its own. Where this fails the connection
		// is gone.
		_ = b.control.SetReadDeadline(time.Time{})
	case n > 0:
		b.extend(b.size)
	}
	return true
}

// first is the body that gives way first: the slowest of those with the greatest rank.
func (h *heldBodies) first(now time.Time) (first *heldBody) {
	for b := range h.bodies {
		if first == nil || cmp.Or(cmp.Compare(h.rank(b), h.rank(first)), cmp.Compare(b.late(now), first.late(now))) > 0 {
			first = b
		}
	}
	return first
}

// rank is greatest for a body of an address over its share, and smallest where signed webhooks came from the address.
func (h *heldBodies) rank(b *heldBody) int {
	switch {
	case h.good.Contains(b.from):
		return 1
	case h.from[b.from] > heldShare:
		return 3
	}
	return 2
}

// late is how much longer the body takes than one that begins after 100 ms and comes at 1 MiB a second: who has just
// begun is never slow, however little has come.
func (b *heldBody) late(now time.Time) float64 {
	return now.Sub(b.began).Seconds() / (0.1 + float64(b.size)/(1<<20))
}

func (h *heldBodies) drop(b *heldBody) {
	b.dropped = true
	h.forget(b)
	_ = b.control.SetReadDeadline(longAgo) // whoever reads it is told
}

func (h *heldBodies) forget(b *heldBody) {
	delete(h.bodies, b)
	h.bytes -= b.size
	if h.from[b.from] -= b.size; h.from[b.from] <= 0 {
		delete(h.from, b.from)
	}
	b.size = 0
}

// release ends with a body when it is answered.
func (h *heldBodies) release(b *heldBody) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.forget(b)
}
