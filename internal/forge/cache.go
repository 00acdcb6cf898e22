package forge

import (
	"bytes"
	"container/list"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// Bounds of the cache, in bytes. A page of comments is seldom larger
// than maxKept; what is larger is read anew each time.
const (
	maxKept  = 256 << 10
	maxCache = 8 << 20
)

// cache keeps answers to reads with their ETag, so that GitHub can answer
// that nothing changed, which costs nothing of the hourly limit. Nothing is ever
// answered from here without asking GitHub. Its zero value is ready.
type cache struct {
	mu    sync.Mutex
	byKey map[cacheKey]*list.Element
	// newest first
	order list.List
	size  int
}

// cacheKey names an answer. GitHub answers each installation for itself.
type cacheKey struct {
	caller int64
	url    string
}

// kept is one answer.
type kept struct {
	key    cacheKey
	header http.Header
	body   []byte
}

// weight is about what one answer takes, its headers included.
func (k *kept) weight() int { return len(k.body) + 2<<10 }

func (c *cache) get(key cacheKey) (*kept, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[key]
	if !ok {
		return nil, false
	}
	c.order.MoveToFront(e)
	return e.Value.(*kept), true
}

func (c *cache) put(k *kept) {
	c.drop([]cacheKey{k.key})
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.byKey == nil {
		c.byKey = make(map[cacheKey]*list.Element)
	}
	c.byKey[k.key] = c.order.PushFront(k)
	for c.size += k.weight(); c.size > maxCache; {
		c.remove(c.order.Back())
	}
}

// drop forgets answers; one that could not be used must not come again.
func (c *cache) drop(keys []cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, key := range keys {
		if e, ok := c.byKey[key]; ok {
			c.remove(e)
		}
	}
}

func (c *cache) remove(e *list.Element) {
	k := c.order.Remove(e).(*kept)
	delete(c.byKey, k.key)
	c.size -= k.weight()
}

// read answers a 304 with what is kept, and keeps an answer that has an ETag
// and is whole, short and JSON.
func (c *cache) read(key cacheKey, old *kept, resp *http.Response) {
	switch tag := resp.Header.Get("ETag"); {
	case resp.StatusCode == http.StatusNotModified && old != nil:
		_ = resp.Body.Close()
		fresh := resp.Header
		resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
		resp.Header = old.header.Clone()
		for name, values := range fresh { // limits and date are today's
			resp.Header[name] = values
		}
		resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(old.body)), int64(len(old.body))
	case resp.StatusCode == http.StatusOK && tag != "":
		head, err := io.ReadAll(io.LimitReader(resp.Body, maxKept+1))
		rest := io.Reader(resp.Body)
		if err != nil {
			rest = failing{err}
		} else if len(head) <= maxKept && json.Valid(head) {
			c.put(&kept{key: key, header: resp.Header.Clone(), body: head})
		}
		resp.Body = joined{io.MultiReader(bytes.NewReader(head), rest), resp.Body}
	}
}

// failing is a body that broke off.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// joined reads from one and closes the other.
type joined struct {
	io.Reader
	io.Closer
}
