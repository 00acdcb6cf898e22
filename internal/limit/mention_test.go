package limit

import (
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"

	"pgregory.net/rapid"
)

func TestCuesMissNoMention(t *testing.T) {
	pieces := []string{"usage", "rate", "Session", "weekly", "daily", "monthly", "spend", "ing", "hour", "opus", "request", " ", "_", "-", "‑", "limit", "Limit", "limits",
		"commit", "hit your ", "Hit Your ", "x", "ä", "_reached", " Reached", "quota", "Quota", "current ", "your ", " exceeded", " limit", "too many ", "Too Many ", "requests",
		"Requests", "out of ", "Out of ", "credits", "extra usage", "\n", `\n`, "li", "mit", "o", "s"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces"), "")
		if got, want := Mentioned(text), mention.MatchString(strings.ToLower(text)); got != want {
			t.Fatalf("Mentioned(%q) = %v, the regexp says %v", text, got, want)
		}
	})
}

func TestMentionsOfLimitsAreFound(t *testing.T) {
	for text, want := range map[string]bool{
		"You’ve hit your usage limit.":            true,
		"429 Too Many Requests":                   true,
		"You have hit your limit":                 true,
		"Your workspace is out of credits.":       true,
		`{"type":"rate_limit_error"}`:             false,
		"rate_limit":                              true,
		"You exceeded your current quota":         true,
		"commit the limits of the parser":         false,
		"too many requests were merged":           true,
		"too many requestsession":                 false,
		strings.Repeat("limit ", 1000) + "hourly": false,
	} {
		if got := Mentioned(text); got != want {
			t.Errorf("Mentioned(%.40q) = %v, want %v", text, got, want)
		}
	}
}

func TestHTMLPageIsNotAnAPIAnswer(t *testing.T) {
	for _, text := range []string{
		"API Error: 403 <!DOCTYPE html><html><head><title>Just a moment...</title>", "unexpected status 401 Unauthorized: <html>sign in</html>",
		"status 502: <HTML ><title>502 Bad Gateway</title>", "503 Service Unavailable <title>Attention Required! | Cloudflare</title>",
	} {
		if got := Read(Evidence{Message: text}).Kind; got != policy.Disconnected {
			t.Errorf("%q is %s", text, got)
		}
	}
}
