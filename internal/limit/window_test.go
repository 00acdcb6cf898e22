package limit

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/policy"
)

var seen = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

// headers reads lines as in HTTP.
func headers(lines string) http.Header {
	h := http.Header{}
	for line := range strings.Lines(lines) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

func TestWindowsAreReadFromHeaders(t *testing.T) {
	at := func(unix int64) time.Time { return time.Unix(unix, 0).UTC() }
	window := func(name string, used float64, resets time.Time, length time.Duration) policy.Window {
		return policy.Window{Name: name, Used: used, ResetsAt: resets, SeenAt: seen, Length: length}
	}
	for name, c := range map[string]struct {
		headers string
		want    []policy.Window
	}{
		"Anthropic's subscriptions": {`
			anthropic-ratelimit-unified-status: allowed_warning
			anthropic-ratelimit-unified-reset: 1795881600
			anthropic-ratelimit-unified-representative-claim: five_hour
			anthropic-ratelimit-unified-5h-utilization: 0.92
			anthropic-ratelimit-unified-5h-reset: 1795881600
			anthropic-ratelimit-unified-7d-utilization: 0.4
			anthropic-ratelimit-unified-7d-reset: 1796281600
			anthropic-ratelimit-unified-7d_oi-utilization: 0.1
			anthropic-ratelimit-unified-7d_oi-reset: 1796281600
			anthropic-ratelimit-unified-7d-sonnet-utilization: 0
			anthropic-ratelimit-unified-7d-sonnet-reset: 1796281600
			anthropic-ratelimit-unified-overage-status: rejected
			anthropic-ratelimit-unified-overage-utilization: 1
			anthropic-ratelimit-unified-overage-reset: 1796281600
			anthropic-ratelimit-unified-overage-period-monthly-utilization: 1`, []policy.Window{
			window("5h", 0.92, at(1795881600), 5*time.Hour),
			window("7d", 0.4, at(1796281600), 7*24*time.Hour),
			window("7d-sonnet", 0, at(1796281600), 7*24*time.Hour),
			window("7d_oi", 0.1, at(1796281600), 7*24*time.Hour),
		}},
		"a rejected window": {`
			anthropic-ratelimit-unified-5h-status: rejected
			anthropic-ratelimit-unified-5h-utilization: 0.99
			anthropic-ratelimit-unified-5h-reset: 1795881600`, []policy.Window{window("5h", 1, at(1795881600), 5*time.Hour)}},
		"Codex's plan": {`
			x-codex-primary-used-percent: 42.5
			x-codex-primary-window-minutes: 300
			x-codex-primary-reset-at: 1795881600
			x-codex-secondary-used-percent: 7
			x-codex-secondary-window-minutes: 10080
			x-codex-secondary-reset-after-seconds: 3600
			x-codex-spark-primary-used-percent: 101
			x-codex-spark-primary-window-minutes: 90
			x-codex-spark-primary-reset-at: 1795870800`, []policy.Window{
			window("5h", 0.425, at(1795881600), 5*time.Hour),
			window("7d", 0.07, seen.Add(time.Hour), 7*24*time.Hour),
			window("spark-90m", 1.01, at(1795870800), 90*time.Minute),
		}},
		"a window without a length":      {"x-codex-primary-used-percent: 1\nx-codex-primary-reset-at: 1795881600", []policy.Window{window("primary", 0.01, at(1795881600), 0)}},
		"a window without a reset":       {"anthropic-ratelimit-unified-5h-utilization: 0.5", []policy.Window{window("5h", 0.5, time.Time{}, 5*time.Hour)}},
		"another provider":               {"x-acme-30d-utilization: 0.25\nx-acme-30d-reset: 1795881600", []policy.Window{window("acme-30d", 0.25, at(1795881600), 0)}},
		"requests and tokens per minute": {"x-ratelimit-remaining-requests: 10\nx-ratelimit-reset-requests: 1s\nanthropic-ratelimit-tokens-remaining: 0", nil},
		"nonsense": {`
			anthropic-ratelimit-unified-5h-utilization: NaN
			anthropic-ratelimit-unified-6h-utilization: -0.5
			anthropic-ratelimit-unified-7h-utilization: lots
			anthropic-ratelimit-unified-8h-utilization: +Inf
			anthropic-ratelimit-unified-9h-utilization: 4000
			anthropic-ratelimit-unified-7d-utilization: 0.5
			anthropic-ratelimit-unified-7d-reset: 4102444800
			anthropic-ratelimit-unified-2h-utilization: 0.97
			anthropic-ratelimit-unified-2h-reset: 1795881601
			x-codex-primary-used-percent:
			-utilization: 0.5`, nil},
		"a hostile name": {"x-" + strings.Repeat("a", 50) + "-utilization: 0.5", nil},
		"none":           {"content-type: text/plain", nil},
	} {
		if diff := cmp.Diff(c.want, Windows(headers(c.headers), seen)); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", name, diff)
		}
	}
}

func TestWindowsAreReadFromCodexEvents(t *testing.T) {
	const recorded = `{"limit_id":"codex","limit_name":null,"primary":{"used_percent":100.0,"window_minutes":300,"resets_at":1795881600},
		"secondary":{"used_percent":40.0,"window_minutes":10080,"resets_at":1796281600},"credits":null,"plan_type":null}`
	want := []policy.Window{
		{Name: "5h", Used: 1, ResetsAt: time.Unix(1795881600, 0).UTC(), SeenAt: seen, Length: 5 * time.Hour},
		{Name: "7d", Used: 0.4, ResetsAt: time.Unix(1796281600, 0).UTC(), SeenAt: seen, Length: 7 * 24 * time.Hour},
	}
	if diff := cmp.Diff(want, CodexWindows(gjson.Parse(recorded), seen)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const relative = `{"primary":{"used_percent":3.5,"window_minutes":299,"resets_in_seconds":600},
		"secondary":{"used_percent":41,"window_minutes":10079,"reset_after_seconds":7200}}`
	want = []policy.Window{
		{Name: "5h", Used: 0.035, ResetsAt: seen.Add(10 * time.Minute), SeenAt: seen, Length: 5 * time.Hour},
		{Name: "7d", Used: 0.41, ResetsAt: seen.Add(2 * time.Hour), SeenAt: seen, Length: 7 * 24 * time.Hour},
	}
	if diff := cmp.Diff(want, CodexWindows(gjson.Parse(relative), seen)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	const unsaid = `{"primary":{"used_percent":null,"window_minutes":300},"secondary":{"used_percent":true},"third":{"used_percent":"9"}}`
	for _, none := range []string{`{"limit_id":"codex","primary":null,"secondary":null}`, unsaid, `null`, `[]`, `"x"`, ``} {
		if got := CodexWindows(gjson.Parse(none), seen); len(got) > 0 {
			t.Errorf("%s has the windows %v", none, got)
		}
	}
}

func TestWindowOfAClaudeCodeWarning(t *testing.T) {
	at := time.Unix(1795881600, 0).UTC()
	for info, want := range map[string][]policy.Window{
		`{"status":"allowed_warning","resetsAt":1795881600,"rateLimitType":"five_hour","utilization":0.92}`: {
			{Name: "5h", Used: 0.92, ResetsAt: at, SeenAt: seen, Length: 5 * time.Hour}},
		`{"status":"allowed_warning","resetsAt":1795881600,"rateLimitType":"seven_day_opus","utilization":1}`: {
			{Name: "7d_opus", Used: 1, ResetsAt: at, SeenAt: seen, Length: 7 * 24 * time.Hour}},
		`{"status":"allowed_warning","resetsAt":1795881600,"rateLimitType":"overage","utilization":1}`:        nil,
		`{"status":"allowed","resetsAt":1795881600,"rateLimitType":"five_hour"}`:                              nil,
		`{"status":"allowed_warning","resetsAt":1795881600,"rateLimitType":"five_hour","utilization":"NaN"}`:  nil,
		`{"status":"allowed_warning","resetsAt":1795881600,"rateLimitType":"five_hour","utilization":-1}`:     nil,
		`{"status":"allowed_warning","resetsAt":9795881600,"rateLimitType":"five_hour","utilization":0.9}`:    nil,
		`{"status":"allowed_warning","resetsAt":1795881600,"rateLimitType":"<b>five_hour","utilization":0.9}`: nil,
	} {
		var got []policy.Window
		if w, known := ClaudeWindow(gjson.Parse(info)); known {
			got = Seen([]policy.Window{w}, seen)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", info, diff)
		}
	}
}
