package policy

import (
	"time"
	"unicode"

	"github.com/dustin/go-humanize"
)

// Ending says how an agent CLI ended, read from its stream and session file.
// The empty ending means that the attempt has not ended.
type Ending string

// The endings. Only Completed is a success; every other one is a failure of the attempt, never a Go error.
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
	SelfLoop        Ending = "loop" // the agent repeated calls without edits, and the CLI or Pawl ended it
	TimedOut        Ending = "timed_out"
	Killed          Ending = "killed"
	Crashed         Ending = "crashed"
	Unknown         Ending = "unknown" // of recorded input that does not tell; no attempt ends so
)

// Purpose says what an attempt is for. Only one that changes files is verified, pushed and learned from.
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
	FromAssignment    Source = "assignment" // of an issue or pull request, or of its review
	FromButton        Source = "button"
	FromBase          Source = "base" // the branch that a pull request is to be merged into
)

// Clock writes a time as the contract does, RFC 3339 in UTC.
func Clock(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func Plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return humanize.Comma(int64(n)) + " " + word + "s"
}

// each is what f makes of each of a list, nil for none.
func each[E, T any](list []E, f func(E) T) (all []T) {
	for _, one := range list {
		all = append(all, f(one))
	}
	return all
}

// Invisible reports whether a character shows nothing: control and format characters, among them those that
// turn the direction of writing, variation selectors, and fillers, which Unicode classes as letters. The
// Arabic number signs and their like are format characters with a shape.
func Invisible(r rune) bool {
	if ' ' <= r && r <= '~' || unicode.Is(unicode.Prepended_Concatenation_Mark, r) {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}
