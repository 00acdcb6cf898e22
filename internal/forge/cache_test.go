package forge

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// tagged answers with an ETag, and with 304 to a request that names it.
func tagged(tag, body string) fault {
	return fault{Answer: func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		w.Header().Set("ETag", tag)
		w.Header().Set("Vary", "Accept, Authorization")
		w.Header().Set("X-RateLimit-Remaining", "17")
		if r.Header.Get("If-None-Match") == tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write([]byte(body))
	}}
}

func TestUnchangedAnswersComeFromTheCache(t *testing.T) {
	h, c := start(t)
	one, two := tagged(`W/"1"`, `{"number":3,"title":"one"}`), tagged(`W/"2"`, `{"number":3,"title":"two"}`)
	h.fail(issueRoute, one, one, two, two)
	for i, want := range []string{"one", "one", "two", "two"} {
		if issue, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil || issue.Title != want {
			t.Errorf("read %d: %q, %v", i, issue.Title, err)
		}
	}
	if used := c.counted(t, "pawl_github_points_total")[strconv.FormatInt(h.repo.Installation, 10)]; used != 2 || len(h.calls(issueRoute)) != 4 {
		t.Errorf("%v points for %d requests", used, len(h.calls(issueRoute)))
	}
}

func TestUnusableAnswerIsNotCached(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, tagged(`"1"`, `{}`), tagged(`"1"`, `{"number":3}`))
	if issue, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil || issue.Number != 3 {
		t.Errorf("%+v, %v", issue, err)
	}
	h.fail(issueRoute, tagged(`"2"`, `{"number":3,`), tagged(`"2"`, `{"number":3}`))
	if issue, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil || issue.Number != 3 {
		t.Errorf("%+v, %v", issue, err)
	}
}

func TestInstallationsDoNotShareAnswers(t *testing.T) {
	c := newCache()
	c.of(5).Set("u", []byte("1"))
	if _, ok := c.of(6).Get("u"); ok {
		t.Error("another installation got the cached answer")
	}
}

func TestCacheSizeIsLimited(t *testing.T) {
	c := newCache()
	for i := range 1000 {
		c.of(5).Set(fmt.Sprint(i), make([]byte, 100<<10))
		c.of(5).Get("0")
	}
	_, used := c.of(5).Get("0")
	_, old := c.of(5).Get("1")
	if c.size > maxCache || c.size < maxCache/2 {
		t.Errorf("%d bytes, want between half of %d and all of it", c.size, maxCache)
	}
	if want := c.entries.Len() * 100 << 10; c.size != want {
		t.Errorf("%d bytes are counted, want %d", c.size, want)
	}
	if !used || old {
		t.Errorf("the recently used answer is cached: %v, an old one: %v", used, old)
	}
}

func TestCacheAlwaysRevalidates(t *testing.T) {
	h, c := start(t)
	for _, title := range []string{"one", "two"} {
		h.fail(issueRoute, status(http.StatusOK, `{"number":3,"title":"`+title+`"}`,
			"ETag", title, "Cache-Control", "private, max-age=60, s-maxage=60", "Vary", "Accept, Authorization"))
		if issue, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil || issue.Title != title {
			t.Errorf("%q, %v; want %s", issue.Title, err, title)
		}
	}
}

func TestCacheSurvivesATokenRenewal(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, tagged(`"1"`, `{"number":3,"title":"one"}`), tagged(`"1"`, `{"number":3,"title":"two"}`))
	for range 2 {
		if issue, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil || issue.Title != "one" {
			t.Errorf("%q, %v; want the cached answer", issue.Title, err)
		}
		c.Apps.Forget(h.repo)
	}
	for _, value := range c.cache.entries.Keys() {
		kept, _ := c.cache.entries.Get(value)
		if strings.Contains(string(kept.([]byte)), "Bearer") {
			t.Errorf("a credential is cached: %s", kept)
		}
	}
}

func TestLargeAnswerIsNotCached(t *testing.T) {
	h, c := start(t)
	h.fail(issueRoute, tagged(`"1"`, `{"number":3,"title":"`+strings.Repeat("x", maxEntry)+`"}`))
	if issue, err := c.Issues.Get(t.Context(), h.repo, 1); err != nil || len(issue.Title) != maxEntry || c.cache.entries.Len() != 0 {
		t.Errorf("%d bytes, %v, %d cached", len(issue.Title), err, c.cache.entries.Len())
	}
}

func TestDeliveryPayloadIsNotCached(t *testing.T) {
	h, c := start(t)
	h.fail("GET /app/hook/deliveries/7", tagged(`"1"`, `{"id":7,"request":{"payload":{"a":1}}}`))
	if payload, err := c.Apps.Payload(t.Context(), 7); err != nil || string(payload) != `{"a":1}` || c.cache.entries.Len() != 0 {
		t.Errorf("%s, %v, %d answers cached", payload, err, c.cache.entries.Len())
	}
}
