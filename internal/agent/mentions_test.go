package agent

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// mention defines what a mention of a limit is. Small letters may be capitals,
// except in the words that the search is for.
var mention = regexp.MustCompile(`(?i:usage|rate|session|weekly|daily|monthly|spend|spending|hour|opus|request)[ _\-‑]?[lL]imit(?i:s?)\b` +
	`|(?i:hit your (?:\w+ )?)[lL]imit|[lL]imit(?i:[ _]?reached)|[qQ]uota(?i: (?:exceeded|reached|limit))|(?i:(?:current|daily|your) )[qQ]uota` +
	`|(?i:too many r)equests|(?i:out )of (?:cr(?i:edits)|ex(?i:tra usage))`)

func TestMentionsOfLimitsAreThoseOfTheRegexp(t *testing.T) {
	pieces := []string{"usage", "rate", "Session", "weekly", "daily", "monthly", "spend", "ing", "hour", "opus", "request", " ", "_", "-", "‑", "limit", "Limit", "limits",
		"LIMIT", "commit", "hit your ", "Hit Your ", "x", "ä", "_reached", " Reached", "quota", "Quota", "current ", "your ", " exceeded", " limit", "too many ", "Too Many ", "requests",
		"Requests", "REQUESTS", "QUOTA", "OUT OF ", "OUT of ", "LImit", "qUota", "reQuests", "rEquests", "creDits", "out of ", "Out of ", "credits", "extra usage", "\n", `\n`, "li", "mit", "o", "s"}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 8).Draw(t, "pieces"), "")
		if got, want := quotesLimit([]byte(text)), mention.MatchString(text); got != want {
			t.Fatalf("quotesLimit(%q) = %v, the regexp says %v", text, got, want)
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
		strings.Repeat("limit ", 1000) + "hourly": false,
	} {
		if got := quotesLimit([]byte(text)); got != want {
			t.Errorf("quotesLimit(%.40q) = %v, want %v", text, got, want)
		}
	}
}
