package forge

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/gregjones/httpcache"
	"github.com/hashicorp/golang-lru/simplelru"
)

// Cache sizes in bytes.
const (
	maxEntry = 256 << 10
	maxCache = 8 << 20
)

// caching is a RoundTripper that revalidates by ETag. Unchanged answers do not count towards the hourly limit.
type caching struct {
	next  http.RoundTripper
	cache *cache
}

func (k caching) RoundTrip(req *http.Request) (*http.Response, error) {
	by := httpcache.Transport{
		Transport: revalidating{k.next},
		Cache:     k.cache.of(callOf(req).limitKey()),
	}
	resp, err := by.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body) // httpcache stores only bodies that were read to the end
	_ = resp.Body.Close()
	if err != nil {
		return nil, err
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	return resp, nil
}

// revalidating makes httpcache store short answers with an ETag for revalidation only.
type revalidating struct{ next http.RoundTripper }

func (v revalidating) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := v.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	resp.Header.Del("Vary")
	resp.Header.Set("Cache-Control", "no-store")
	if callOf(req).keeps(req, resp) {
		resp.Header.Set("Cache-Control", "no-cache")
	}
	return resp, nil
}

func (c *call) keeps(req *http.Request, resp *http.Response) bool {
	switch {
	case c.once, resp.ContentLength > maxEntry:
		return false
	case resp.StatusCode == http.StatusNotModified:
		return req.Header.Get("If-None-Match") != ""
	default:
		return resp.StatusCode == http.StatusOK && resp.Header.Get("ETag") != ""
	}
}

// cache stores answers and evicts the least recently used.
type cache struct {
	mu      sync.Mutex
	entries *simplelru.LRU
	size    int
}

func newCache() *cache {
	c := &cache{}
	// The LRU's own limit counts answers and never applies; Set limits the bytes.
	c.entries, _ = simplelru.NewLRU(maxCache, func(_, gone any) { c.size -= len(gone.([]byte)) })
	return c
}

// of returns a caller's part of the cache, since GitHub answers each installation separately.
func (c *cache) of(caller int64) httpcache.Cache {
	return cacheOf{c, strconv.FormatInt(caller, 10) + " "}
}

type cacheOf struct {
	*cache
	caller string
}

func (c cacheOf) Get(key string) ([]byte, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	value, ok := c.entries.Get(c.caller + key)
	if !ok {
		return nil, false
	}
	return value.([]byte), true
}

func (c cacheOf) Set(key string, answer []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Remove(c.caller + key)
	c.entries.Add(c.caller+key, answer)
	for c.size += len(answer); c.size > maxCache; {
		c.entries.RemoveOldest()
	}
}

func (c cacheOf) Delete(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Remove(c.caller + key)
}
