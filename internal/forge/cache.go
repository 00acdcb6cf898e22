package forge

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"sync"

	"github.com/hashicorp/golang-lru/simplelru"
)

// Bounds of the cache, in bytes. A page of comments is seldom larger than maxKept.
const (
	maxKept  = 256 << 10
	maxCache = 8 << 20
)

// cache keeps answers to reads with their ETag: that nothing changed costs nothing of the hourly limit.
// Nothing is answered from here without asking GitHub.
type cache struct {
	mu   sync.Mutex
	kept *simplelru.LRU // what was used longest ago goes first
	size int
}

func newCache() *cache {
	c := &cache{}
	// Its own limit is a number of answers; what counts here are their bytes.
	c.kept, _ = simplelru.NewLRU(maxCache, func(_, gone any) { c.size -= gone.(*kept).weight() })
	return c
}

// cacheKey names an answer. GitHub answers each installation for itself.
type cacheKey struct {
	caller int64
	url    string
}

type kept struct {
	header http.Header
	body   []byte
}

// weight is about what one answer takes, its headers included.
func (k *kept) weight() int { return len(k.body) + 2<<10 }

func (c *cache) get(key cacheKey) (*kept, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kept.Get(key)
	if !ok {
		return nil, false
	}
	return k.(*kept), true
}

// put keeps an answer; nil forgets the one that is there.
func (c *cache) put(key cacheKey, k *kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kept.Remove(key)
	if k == nil {
		return
	}
	c.kept.Add(key, k)
	for c.size += k.weight(); c.size > maxCache; {
		c.kept.RemoveOldest()
	}
}

// cached asks GitHub only for what changed, and keeps an answer that has an ETag and is short. One that
// could not be used is not asked for by its tag again.
func (c *call) cached(req *http.Request) (*http.Response, error) {
	if c.writes() || c.once {
		return c.exchange(req)
	}
	key := cacheKey{c.limitKey(), req.URL.String()}
	old, known := c.cache.get(key)
	if known {
		req.Header.Set("If-None-Match", old.header.Get("ETag"))
	}
	resp, err := c.exchange(req)
	switch {
	case err != nil:
		if c.last.status != 0 {
			c.cache.put(key, nil)
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
		c.cache.put(key, &kept{header: resp.Header.Clone(), body: body})
	}
	return resp, nil
}

// setAnswer gives an answer its body, which is in memory as a whole.
func setAnswer(resp *http.Response, body []byte) {
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}
