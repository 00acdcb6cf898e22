package limit

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
)

var resetNow = time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)

// The errors' types contradict their words.
func TestBillingWordsOutrankTypeAndStatus(t *testing.T) {
	const used, fast, busy = "You've hit your usage limit.", "Rate limit reached for requests per min.", "The server is currently overloaded."
	for _, c := range []struct {
		status      int
		kind, words string
		want        policy.Ending
	}{
		{429, "usage_limit_reached", fast, policy.UsageLimit},
		{429, "insufficient_quota", busy, policy.UsageLimit},
		{429, "rate_limit_error", used, policy.UsageLimit},
		{429, "rate_limit_exceeded", used, policy.UsageLimit},
		{401, "authentication_error", used, policy.UsageLimit},
		{401, "authentication_error", fast, policy.Auth},
		{403, "permission_error", busy, policy.Auth},
		{529, "overloaded_error", used, policy.Overloaded},
		{0, "overloaded_error", used, policy.Overloaded},
		{0, "authentication_error", fast, policy.Auth},
		{0, "usage_limit_reached", busy, policy.UsageLimit},
		{400, "invalid_request_error", used, policy.UsageLimit},
		{400, "invalid_request_error", "Unknown value: " + used, ""},
		{404, "not_found_error", fast, ""},
		{0, "invalid_request_error", used, policy.UsageLimit},
	} {
		body := fmt.Sprintf(`{"error":{"type":%q,"message":%q}}`, c.kind, c.words)
		if l, ok := readAnswer(c.status, nil, body); l.Kind != c.want || ok != (c.want != "") {
			t.Errorf("%d %s: %q, want %q", c.status, body, l.Kind, c.want)
		}
	}
}

// The name of the quota and the form of its reset do not matter. A daily quota is not a rate limit.
func TestQuotaResetWithinMinutesIsARateLimit(t *testing.T) {
	for _, c := range []struct {
		message, wait string
		want          policy.Ending
	}{
		{"You exceeded your current quota.", "540", policy.RateLimited},
		{"You exceeded your current quota.", "660", policy.UsageLimit},
		{"You exceeded your current quota.", "", policy.UsageLimit},
		{"You exceeded your current quota. Please retry in 34.07s.", "", policy.RateLimited},
		{"Quota exceeded for requests per day. Please retry in 34s.", "34", policy.UsageLimit},
		{"Your daily quota is exhausted.", "34", policy.UsageLimit},
		{"Too many requests.", "660", policy.UsageLimit},
		{"Too many requests.", "540", policy.RateLimited},
	} {
		header := http.Header{}
		if c.wait != "" {
			header.Set("Retry-After", c.wait)
		}
		l, ok := readAnswer(429, header, fmt.Sprintf(`{"error":{"message":%q}}`, c.message))
		if !ok || l.Kind != c.want {
			t.Errorf("%s in %s s: %q, want %q", c.message, c.wait, l.Kind, c.want)
		}
	}
}

// The message of opencode's free plan speaks of a rate, although its quota resets after half a day.
func TestFreeQuotaOfHoursIsAUsageLimit(t *testing.T) {
	const body = `{"type":"error","error":{"type":"FreeUsageLimitError","message":"Rate limit exceeded. Please try again later."}}`
	for _, seconds := range []string{"", "13471", "62288"} {
		header := http.Header{}
		if seconds != "" {
			header.Set("Retry-After", seconds)
		}
		l, ok := readAnswer(429, header, body)
		want := after(resetNow, number(seconds))
		if !ok || l.Kind != policy.UsageLimit || !l.ResetsAt.Equal(want) {
			t.Errorf("in %s s: %+v", seconds, l)
		}
	}
}

// All values name the same time.
func TestEpochsInHeadersMayBeMilliseconds(t *testing.T) {
	at := resetNow.Add(90 * time.Second)
	for _, value := range []string{fmt.Sprint(at.Unix()), fmt.Sprint(at.UnixMilli()), "90"} {
		for _, name := range []string{"X-Ratelimit-Reset", "Ratelimit-Reset"} {
			if got := HeaderReset(http.Header{name: {value}}, resetNow); !got.Equal(at) {
				t.Errorf("%s: %s is %s, want %s", name, value, got, at)
			}
		}
	}
}

// readAnswer reads a provider's answer as the gateway does.
func readAnswer(status int, header http.Header, body string) (policy.Limit, bool) {
	e := Answer(status, header, []byte(body))
	e.Now = resetNow
	return Read(e).Limit()
}
