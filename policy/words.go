package policy

import (
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
)

// Ending is how an agent CLI ended, parsed from its stream and session file; empty while the attempt runs.
type Ending string

// The endings. Only Completed is a success. The others are failures of the attempt, never Go errors.
const (
	Completed       Ending = "completed"
	NoAnswer        Ending = "no_answer"
	CutOff          Ending = "cut_off"
	UsageLimit      Ending = "usage_limit"
	RateLimited     Ending = "rate_limited"
	Overloaded      Ending = "overloaded"
	Disconnected    Ending = "disconnected"
	Auth            Ending = "auth"
	Misconfigured   Ending = "misconfigured"
	ContextOverflow Ending = "context_overflow"
	TurnLimit       Ending = "turn_limit"
	SelfLoop        Ending = "loop" // repeated calls without edits, ended by the CLI or Pawl
	TimedOut        Ending = "timed_out"
	Killed          Ending = "killed"
	Crashed         Ending = "crashed"
	Unknown         Ending = "unknown" // only in recorded input
)

// Purpose of an attempt. Only attempts that change files are verified, pushed and learned from.
type Purpose string

const (
	ToChange Purpose = ""
	ToAnswer Purpose = "ask"
	ToPlan   Purpose = "plan"
)

type Action string

const (
	DoAttempt Action = "attempt"
	DoWait    Action = "wait"
	DoStop    Action = "stop"
	DoDone    Action = "done"
	DoAsk     Action = "ask"
)

type Source string

const (
	FromComment       Source = "comment"
	FromReview        Source = "review"
	FromReviewComment Source = "review_comment"
	FromDescription   Source = "description"
	FromCheckRun      Source = "check_run"
	FromLabel         Source = "label"
	FromAssignment    Source = "assignment" // of an issue or pull request, or as reviewer
	FromButton        Source = "button"
	FromBase          Source = "base" // the pull request's base branch
)

// Clock formats a time as RFC 3339 in UTC.
func Clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return humanize.Comma(int64(n)) + " " + word + "s"
}

func each[E, T any](list []E, f func(E) T) (all []T) {
	for _, one := range list {
		all = append(all, f(one))
	}
	return all
}

// Invisible reports whether a character is invisible: control and format characters, variation selectors, and fillers
// that Unicode classes as letters. Arabic number signs are format characters, but visible.
func Invisible(r rune) bool {
	if ' ' <= r && r <= '~' || unicode.Is(unicode.Prepended_Concatenation_Mark, r) {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
