package forge

import (
	"bytes"
	"container/list"
	"io"
	"maps"
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
	c.drop(k.key)
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

// drop forgets an answer.
func (c *cache) drop(key cacheKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.byKey[key]; ok {
		c.remove(e)
	}
}

func (c *cache) remove(e *list.Element) {
	k := c.order.Remove(e).(*kept)
	delete(c.byKey, k.key)
	c.size -= k.weight()
}

// cached is the transport that asks GitHub only for what changed.
type cached struct {
	*call
	next http.RoundTripper
}

// RoundTrip sends one request. It answers a 304 with what is kept, and keeps an
// answer that has an ETag and is short. One that could not be used is not asked
// for by its tag again.
func (t cached) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.writes() || t.once {
		return t.next.RoundTrip(req)
	}
	key := cacheKey{t.limitKey(), req.URL.String()}
	old, known := t.cache.get(key)
	if known {
		req = req.Clone(req.Context())
		req.Header.Set("If-None-Match", old.header.Get("ETag"))
	}
	resp, err := t.next.RoundTrip(req)
	switch {
	case err != nil:
		if t.last.status != 0 {
			t.cache.drop(key)
		}
		return nil, err
	case resp.StatusCode == http.StatusNotModified && known:
		fresh := resp.Header
		resp.StatusCode, resp.Status = http.StatusOK, "200 OK"
		resp.Header = old.header.Clone()
		maps.Copy(resp.Header, fresh) // limits and date are today's
		setAnswer(resp, old.body)
	case resp.StatusCode == http.StatusOK && resp.Header.Get("ETag") != "" && resp.ContentLength <= maxKept:
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		setAnswer(resp, body)
		t.cache.put(&kept{key: key, header: resp.Header.Clone(), body: body})
	}
	return resp, nil
}

// setAnswer gives an answer its body, which is in memory as a whole.
func setAnswer(resp *http.Response, body []byte) {
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}
