package limit

import (
	"testing"
	"time"
)

func TestPauseBeforeTheNextRequest(t *testing.T) {
	for name, c := range map[string]struct {
		headers string
		want    time.Duration
	}{
		"OpenAI's requests are used up":  {"x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1.5s\nx-ratelimit-remaining-tokens: 10\nx-ratelimit-reset-tokens: 6m0s", 1500 * time.Millisecond},
		"its tokens too, for longer":     {"x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1s\nx-ratelimit-remaining-tokens: 0\nx-ratelimit-reset-tokens: 40s", 40 * time.Second},
		"Anthropic's input tokens":       {"anthropic-ratelimit-input-tokens-remaining: 0\nanthropic-ratelimit-input-tokens-reset: " + seen.Add(20*time.Second).Format(time.RFC3339), 20 * time.Second},
		"seconds, as others report them": {"x-ratelimit-remaining: 0\nx-ratelimit-reset: 7", 7 * time.Second},
		"something is left":              {"x-ratelimit-remaining-requests: 1\nx-ratelimit-reset-requests: 1s", 0},
		"a day's requests":               {"x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 23h", 0},
		"a reset that has passed":        {"anthropic-ratelimit-tokens-remaining: 0\nanthropic-ratelimit-tokens-reset: " + seen.Add(-time.Second).Format(time.RFC3339), 0},
		"no reset":                       {"x-ratelimit-remaining-requests: 0", 0},
		"nonsense":                       {"x-ratelimit-remaining-requests: NaN\nx-ratelimit-reset-requests: soon", 0},
		"a usage window is not a minute": {"anthropic-ratelimit-unified-5h-utilization: 1\nanthropic-ratelimit-unified-5h-reset: 1795881600", 0},
		"without headers about limits":   {"content-type: text/plain", 0},
	} {
		if got := Pause(headers(c.headers), seen); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
