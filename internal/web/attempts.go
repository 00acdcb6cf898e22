package web

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

func how(a checkrun.Attempt) string {
	d := a.Decision
	return render.Joined(", ", render.Line(a.Effort, 20), render.When(d.Rung > 0, fmt.Sprintf("rung %d", d.Rung)),
		render.When(d.Escalated, "more effort"), render.When(d.Different, "different approach"))
}

var endingClasses = map[policy.Outcome]string{
	policy.WorkVerified:   "done",
	policy.WorkUnverified: "done",
	policy.Answered:       "done",
	policy.Planned:        "done",
	policy.NoChange:       "waiting",
	policy.Declined:       "waiting",
	policy.Asked:          "waiting",
	policy.Interrupted:    "waiting",
	policy.Cancelled:      "waiting",
	policy.NotPermitted:   "waiting",
	policy.WasUsageLimit:  "waiting",
	policy.WasRate:        "waiting",
	policy.WasOverload:    "waiting",
}

func endingClass(a checkrun.Attempt) string {
	if a.Ending == "" && a.Outcome == "" {
		return "running"
	}
	return cmp.Or(endingClasses[a.Outcome], "failed")
}

// object matches a SHA-1 or SHA-256 git object name.
var object = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

func commit(name string) string { return render.Head(render.Line(name, 64), 10) }

// CommitURL returns GitHub's page of a commit, or empty for an invalid name.
func (d threadData) CommitURL(name string) string {
	if !object.MatchString(name) {
		return ""
	}
	return render.URL(d.repoURL + "/commit/" + name)
}

// Lengths shared by several templates, in characters.
const (
	maxName   = 100
	maxTitle  = 120
	maxReason = 300
)

// words returns the template functions. Foreign text passes through one that cleans and cuts it, unless clean already.
func words() template.FuncMap {
	return template.FuncMap{
		"line":   func(s any, most int) string { return render.Line(fmt.Sprint(s), most) },
		"name":   func(s any) string { return render.Line(fmt.Sprint(s), maxName) },
		"term":   func(s any) string { return render.Spaced(render.Line(fmt.Sprint(s), maxName)) },
		"reason": func(s string) string { return render.Line(s, maxReason) },
		"quote":  render.Block,
		"url":    render.URL,
		"dash":   render.Dash,

		"number":  number,
		"plural":  plural,
		"percent": percent,
		"span":    func(low, high float64) int { return max(1, percent(high)-percent(low)) },
		"middle":  func(mean float64) int { return max(0, min(98, percent(mean)-1)) },
		"more":    func(n, shown int) int { return max(0, n-shown) },
		"ago":     ago,
		"until":   until,
		"logged":  logged,

		"how":         how,
		"endingClass": endingClass,
		"used":        checkrun.Used,
		"spent":       checkrun.Spent,
		"rungName":    checkrun.RungName,
		"rungTokens":  checkrun.RungTokens,
		"rungCost":    checkrun.RungCost,
		"commit":      commit,
		"reset":       render.Reset,
		"fields":      fields,
		"believed":    believed,
		"shortened":   shortened,
		"attemptHref": attemptHref,
		"lasted":      lasted,
		"names":       names,
		"escape":      url.PathEscape,
		"under":       under,
		"pagesOf":     pagesOf,
		"int":         func(n int64) int { return int(n) },
		"upper":       func(s string) string { return strings.ToUpper(s[:1]) + s[1:] },
		"violations": func(h learning.SourceHealth, most int) []learning.Violation {
			shown, _ := newest(h.Violations, most)
			return shown
		},
	}
}

// nested is a part's data, with the page's data or the relative address of the first page.
type nested struct{ Home, Lines any }

func under(home, lines any) nested { return nested{home, lines} }

type pageLink struct{ Name, Path string }

func pagesOf(operator bool) []pageLink {
	all := []pageLink{{"Threads", ""}, {"Costs", "costs"}}
	if operator {
		all = append(all, pageLink{"Accounts", "accounts"}, pageLink{"Backends", "backends"})
	}
	return all
}

// newest returns up to most items, newest first, and the number omitted.
func newest[T any](all []T, most int) (shown []T, earlier int) {
	earlier = max(0, len(all)-most)
	shown = slices.Clone(all[earlier:])
	slices.Reverse(shown)
	return shown, earlier
}

// moment shows a time: short text, and the full time on hover.
type moment struct{ Text, Full, ISO string }

// ago shows a past time, or nothing for the zero time.
func ago(now, t time.Time) moment {
	if d := now.Sub(t); d >= time.Second {
		return at(t, render.Span(d)+" ago")
	}
	return at(t, "now")
}

// until shows a future time, or nothing for the zero time.
func until(now, t time.Time) moment { return at(t, render.Left(now, t)) }

// logged shows a time to the second, with its date unless it is today.
func logged(now, t time.Time) moment {
	now, t = now.UTC(), t.UTC()
	if now.Format(time.DateOnly) == t.Format(time.DateOnly) {
		return at(t, t.Format(time.TimeOnly))
	}
	return at(t, t.Format(time.DateTime))
}

func at(t time.Time, text string) moment {
	if t.IsZero() {
		return moment{}
	}
	t = t.UTC()
	return moment{Text: text, Full: t.Format("2006-01-02 15:04:05 UTC"), ISO: t.Format(time.RFC3339)}
}

func number(n int) string {
	return strings.ReplaceAll(render.Count(n), ",", "\u2009")
}

func plural(n int, thing string) string {
	return strings.ReplaceAll(policy.Plural(n, thing), ",", "\u2009")
}

func percent(v float64) int { return int(min(max(v, 0), 1)*100 + 0.5) }
