package handlers

import (
	"cmp"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
	// smallBody is what nearly every delivery stays below: a comment is at most 64 KiB in a payload of some 20 KiB.
	smallBody = 1 << 20
	// heldForSmall is the part of maxHeld that only bodies below smallBody may fill, so that large ones keep no
	// ordinary delivery out.
	heldForSmall = 16 << 20
	// heldShare is what one address may hold while others need room; an address over it gives way first.
	heldShare = maxHeld / 2
	// spare is the room that is made beyond what is needed, so that not each body that comes is compared with all.
	spare = maxHeld / 16
	// worthDropping is what a body must hold to be dropped for others: below it nothing is gained.
	worthDropping = 4 << 10
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
	most := int64(maxHeld)
	if b.size > smallBody {
		most -= heldForSmall
	}
	for n > 0 && h.bytes > most && !b.dropped {
		h.makeRoom(most-spare, b)
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

// makeRoom drops the slowest of those that give way first, until there is as much room or they give way no sooner than
// others. Small ones free nothing. Where none can be dropped it is b.
func (h *heldBodies) makeRoom(most int64, b *heldBody) {
	type candidate struct {
		*heldBody
		rank int
		late float64
	}
	var all []candidate
	now := time.Now()
	for b := range h.bodies {
		if b.size >= worthDropping {
			all = append(all, candidate{b, h.rank(b), b.late(now)})
		}
	}
	if len(all) == 0 {
		h.drop(b)
		return
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Or(cmp.Compare(b.rank, a.rank), cmp.Compare(b.late, a.late)) })
	for _, c := range all {
		if h.bytes <= most || h.rank(c.heldBody) < all[0].rank {
			return
		}
		h.drop(c.heldBody)
	}
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
