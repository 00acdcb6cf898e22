package limit

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// maxFailureText bounds how much of an error message is looked at.
const maxFailureText = 8 << 10

var httpStatus = regexp.MustCompile(`(?i)(?:unexpected status|last status:|api error:(?: request rejected \()?|"code"\s*:|status(?:[ _-]?code)?["']?[:=]?|http(?:/\d(?:\.\d)?)?)\s*(\d{3})\b`)

// page matches an answer that is not the API's: a sign-in page, a CDN's challenge, a gateway's error, whatever status
// it came with.
var page = regexp.MustCompile(`(?i)<!doctype html|<html[\s>]|<title>(?:just a moment|attention required|sign in|\d{3} )`)

// Classify names the ending of a message from where only errors stand; false for wordings that it does not
// know.
func Classify(text string) (policy.Ending, bool) {
	text = text[:min(len(text), maxFailureText)]
	if rules()[0].wording.MatchString(text) {
		return policy.UsageLimit, true
	}
	if page.MatchString(text) {
		return policy.Disconnected, true
	}
	if m := httpStatus.FindStringSubmatch(text); m != nil {
		status, _ := strconv.Atoi(m[1])
		if e := OfStatus(status); e != "" {
			return e, true
		}
	}
	for _, r := range rules()[1:] {
		if r.wording.MatchString(text) {
			return r.ending, true
		}
	}
	return policy.Crashed, false
}

// statuses are the endings of the HTTP statuses below 500 that tell one.
var statuses = map[int]policy.Ending{
	401: policy.Auth,
	402: policy.UsageLimit,
	403: policy.Auth,
	404: policy.Misconfigured,
	408: policy.Disconnected,
	413: policy.ContextOverflow,
	429: policy.RateLimited,
}

// OfStatus names the ending of an HTTP status, "" where the status alone does not tell.
func OfStatus(status int) policy.Ending {
	if status >= 500 && status <= 599 {
		return policy.Overloaded
	}
	return statuses[status]
}

// bareLimit matches a line that is a limit message and does not merely contain one: the wording begins it,
// apart from labels of errors, and a sentence ends or goes on to the reset after it.
var bareLimit = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[^\pL\pN{"'` + "`" + `\[]*(?:\[api error:\s*)?(?:(?:fatal|error|warning|codex|claude|\w*error|api error)\s*:\s*|sorry, |failed after \d+ attempts\. last error: |please run /login · )*` +
		`(?:stream disconnected before completion: )?(?:` + wordsOf(policy.UsageLimit) + `|you(?:['’]ve| have)? (?:hit a rate limit|been rate-limited|exceeded your [\w \-]{0,30}limits?)|` + wordsOf(policy.RateLimited) +
		`|exceeded retry limit, last status: 429|(?:selected )?model (?:[\w.\-]+ )?is at capacity|we['’]re currently experiencing high demand|\d{3} \{"type":"error")` +
		`(?:\s*(?:$|[.,;:!|·∙•()\[\-–—]|resets?\b|for [\w.\-]+|that restricts|in organization|set in|too many|on this model|and\b))`)
})

// errorBody matches a provider's answer that was printed as it came.
var errorBody = regexp.MustCompile(`(?i)^(?:(?:\[?api error|error|too many requests)\s*:\s*)*\{\s*"(?:type"\s*:\s*"error"\s*,\s*"error|error)"\s*:\s*\{`)

// IsMessage reports whether a line of plain output is a known limit message, and of which kind.
func IsMessage(line string) (policy.Ending, bool) {
	line = strings.TrimSpace(line)
	if len(line) > 1024 {
		return "", false
	}
	if !bareLimit().MatchString(line) && !errorBody.MatchString(line) {
		return "", false
	}
	ending, known := Classify(line)
	return ending, known && ending.IsLimit()
}

// mention matches what is about a limit wherever it stands, in lower case and loosely: it only counts quotes.
var mention = regexp.MustCompile(`(?:usage|rate|session|weekly|daily|monthly|spend|spending|hour|opus|request)[ _\-‑]?limits?\b` +
	`|hit your (?:\w+ )?limit|limit[ _]?reached|quota (?:exceeded|reached|limit)|(?:current|daily|your) quota` +
	`|too many requests\b|out of (?:credits|extra usage)`)

// Commands print much, so mention is tried only around parts of words that each mention has; none in capitals.
var cues = []string{"imit", "uota", "equests", "ut of "}

// around is how many bytes on each side of a cue are looked at, and longestWord how many more to the end of a word, which
// would else be taken for another.
const around, longestWord = 32, 256

// Mentioned reports whether one of the texts is about a limit.
func Mentioned(texts ...string) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		return slices.ContainsFunc(cues, func(cue string) bool { return mentionedAt(text, cue) })
	})
}

func mentionedAt(text, cue string) bool {
	for from := 0; ; {
		at := strings.Index(text[from:], cue)
		if at < 0 {
			return false
		}
		at += from
		if mention.MatchString(strings.ToLower(about(text, at))) {
			return true
		}
		from = at + len(cue)
	}
}

// about is what stands around a place of a text.
func about(text string, at int) string {
	after := text[min(len(text), at+around):min(len(text), at+longestWord)]
	next := strings.TrimLeft(after, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	end := min(len(text), at+longestWord) - len(next)
	return text[max(0, at-around):end]
}

// Bounds of a reset time from now: nothing is gained by asking sooner, and no plan's window is longer than a
// week; a later time is a misreading or a monthly cap that a person may lift.
const (
	Soonest = time.Minute
	Latest  = 8 * 24 * time.Hour
)

// farthest is the longest wait that is read at all, so that nothing overflows.
const farthest = 400 * 24 * time.Hour

// Bound keeps a reset time between the soonest that is of use and Latest. The
// reason says what was corrected; it is empty where nothing was.
func Bound(at, now time.Time, soonest time.Duration) (bounded time.Time, reason string) {
	at = at.UTC()
	switch {
	case at.Before(now.Add(soonest)):
		return now.Add(soonest).UTC(), "the reset time " + at.Format(time.RFC3339) + " is past or too near; the earliest used is one minute from now"
	case at.After(now.Add(Latest)):
		return now.Add(Latest).UTC(), "the reset time " + at.Format(time.RFC3339) + " is more than eight days away; eight days are used"
	}
	return at, ""
}

// longWait separates a rate limit from a usage limit where the wording does not: per-minute limits end within
// minutes, plans take hours (Copilot's "rate limit … try again in 58 hours").
const longWait = 10 * time.Minute

var (
	// perDay matches limits of a long window worded as rate limits ("free-models-per-day"), and Google's names
	// of them.
	perDay = regexp.MustCompile(`(?i)\bper[ _-]?(?:day|week|month)\b|PerDay|\b(?:daily|weekly|monthly)\b|\((?:RPD|TPD)\)`)
	// quota matches the word for a limit of no certain window: a minute's and a month's are called so.
	quota = regexp.MustCompile(`(?i)\bquota\b|exhausted your capacity`)
)

// Weigh corrects the kind of a limit by how long it lasts; resets is zero where
// that is unknown. The reason is empty where nothing had to be corrected.
func Weigh(kind policy.Ending, message string, resets, now time.Time) (weighed policy.Ending, reason string) {
	long := resets.Sub(now) > longWait
	daily := perDay.MatchString(message)
	switch kind {
	case policy.RateLimited:
		if long {
			return policy.UsageLimit, "the wait is longer than a short rate limit lasts, so it counts as a usage limit"
		}
		if daily {
			return policy.UsageLimit, "the limit is that of a day or longer, so it counts as a usage limit"
		}
	case policy.UsageLimit:
		soon := !resets.IsZero() && !long
		if soon && !daily && quota.MatchString(message) {
			return policy.RateLimited, "the provider asks to come back within minutes, so it counts as a short rate limit"
		}
	default: // others have no length
	}
	return kind, ""
}
