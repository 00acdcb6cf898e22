package policy

import (
	"fmt"
	"slices"
	"time"
)

// Watch is a user's standing request to get a pull request's checks green, in rounds: attempts that no user asked for.
// The zero value watches nothing.
type Watch struct {
	Rounds int       // limit of rounds without new words from a user; 0 if nothing is watched
	Asked  time.Time // the last request in new words; zero for none
	Spoke  time.Time // a user's last command or comment
	Pushed time.Time // a user's last push to the branch
	Moved  time.Time // the last push to the branch by anyone but Pawl
	Ended  string    // why a watch ended, if only that watch asked for the run's attempts; else empty
	// Settles is when Pawl looks at the head's checks again; zero if they have finished.
	Settles time.Time
}

// Silence is how long a watch leaves a branch alone after a user's push, unless the user asks. The issue that requested
// watches gave the value.
const Silence = time.Hour

// QuietUntil returns when the silence after a user's push ends; zero if a user spoke since.
func (w Watch) QuietUntil() time.Time {
	if w.Pushed.IsZero() || w.Spoke.After(w.Pushed) {
		return time.Time{}
	}
	return w.Pushed.Add(Silence)
}

// watched reports whether only a watch asks for work.
func (f Facts) watched() bool {
	if f.Watch.Rounds == 0 || len(f.Fresh) == 0 {
		return false
	}
	return !slices.ContainsFunc(f.Fresh, func(r Request) bool { return !r.Watched })
}

// WatchRounds counts the rounds since a user last typed something new.
func (f Facts) WatchRounds() int {
	if f.typed() && !f.watched() {
		return 0
	}
	return f.lastRound().n
}

// roundOf is a round of a watch.
type roundOf struct {
	n    int
	red  []string // tests that failed before it
	last Attempt
}

// lastRound returns the last round since a user last typed something new.
func (f Facts) lastRound() (r roundOf) {
	for _, a := range slices.Backward(f.Attempts) {
		over := a.Decision.Round > 0 && r.n > 0 && a.Decision.Round != r.n
		if a.StartedAt.Before(f.Watch.Asked) || a.Review.Ordered || over {
			break
		}
		if a.Decision.Round == 0 {
			continue
		}
		if r.n == 0 {
			r.last = a
		}
		r.n, r.red = a.Decision.Round, a.RedTests
	}
	return r
}

// fixedNothing lists the tests that failed before a round if all of them still fail after it. It lists none if
// something else may be the cause: the round broke off, or the branch has moved since.
func (r roundOf) fixedNothing(f Facts) []string {
	if !r.last.judged() || f.Watch.Moved.After(r.last.EndedAt) {
		return nil
	}
	if slices.ContainsFunc(r.red, func(test string) bool { return !slices.Contains(f.RedTests, test) }) {
		return nil
	}
	return r.red
}

// judged reports whether an attempt left work, or ended with a verdict about it.
func (a Attempt) judged() bool {
	verdicts := []Outcome{VerifyFailed, NoChange, Declined, OnlyLeftOut, HasSecret, HasConflict, EditLoop}
	return a.Pushed || a.Outcome.Work() || slices.Contains(verdicts, a.Outcome)
}

// round returns the number of the round that the next attempt begins or repeats; 0 outside a watch.
func (f Facts) round() int {
	if f.watched() {
		return f.WatchRounds() + 1
	}
	if a, _ := f.result(); f.Watch.Rounds > 0 {
		return a.Decision.Round
	}
	return 0
}

// unwatched ends the work that only a watch asked for, once the watch has ended.
func unwatched(f Facts) Decision {
	a, ok := f.result()
	if !ok || f.Watch.Ended == "" || f.Purpose != ToChange {
		return Decision{}
	}
	return Decision{Action: DoDone, Rule: RuleUnwatched, Reasons: Because(RuleUnwatched, f.Watch.Ended, fmt.Sprintf("attempt %d was the last", a.N))}
}

// watching bounds the rounds of a watch. After a push to the branch during or after a round, the watch looks at the new
// head first.
func watching(f Facts) Decision {
	a, ok := f.result()
	switch {
	case a.Moved:
		return Decision{Action: DoDone, Rule: RuleMoved, Reasons: Because(RuleMoved, fmt.Sprintf("attempt %d ended: %s", a.N, a.Detail))}
	case ok && a.Decision.Round > 0 && f.Watch.Moved.After(a.EndedAt):
		return Decision{Action: DoDone, Rule: RuleMoved, Reasons: Because(RuleMoved, fmt.Sprintf("the branch moved after attempt %d", a.N))}
	}
	if !f.watched() {
		return Decision{}
	}
	if d := f.notGreen(); d.Action != "" {
		return d
	}
	quiet := f.Watch.QuietUntil()
	switch {
	case f.Now.Before(quiet):
		return Decision{
			Action:  DoWait,
			Rule:    RuleWatch,
			Until:   quiet,
			Reasons: Because(RuleWatch, "a user pushed to the branch less than an hour ago"),
			Hint:    "Comment /pawl resume to begin the round now.",
		}
	case f.Now.Before(f.Watch.Settles):
		return Decision{
			Action:  DoWait,
			Rule:    RuleWatch,
			Until:   f.Watch.Settles,
			Reasons: Because(RuleWatch, "the round begins when the checks of the head commit have finished"),
			Hint:    "Comment /pawl resume to begin the round now.",
		}
	}
	return Decision{}
}

// notGreen stops a watch whose rounds are used up or bring no progress.
func (f Facts) notGreen() Decision {
	n := f.WatchRounds()
	var why []string
	if n >= f.Watch.Rounds {
		why = append(why, fmt.Sprintf("%s ran without a user's new words, which is the limit", Plural(n, "round")))
	}
	if red := f.lastRound().fixedNothing(f); len(red) > 0 {
		why = append(why, fmt.Sprintf("round %d fixed no failing test: %s", n, few(red)))
	}
	if len(why) == 0 {
		return Decision{}
	}
	why = append([]string{"not green after " + Plural(n, "round")}, why...)
	return stop(RuleNotGreen, "Look at the failing checks; comment `/pawl solve` with what to do, in new words. Then the count begins again.", why...)
}

// Watchable holds the facts that decide whether a pull request may be watched.
type Watchable struct {
	Unread       string // what GitHub refused to show, and the error; empty for nothing
	Pull         bool   // the thread has an open pull request
	Fork         bool   // its branch lies in another repository
	Bot          string // the bot that opened it, unless it is Pawl or in allowed_bots; else empty
	Branch       string
	Default      bool   // the branch is the default branch
	Other        int    // the watched pull request that has the same branch; 0 for none
	Protected    bool   // classic protection or a rule blocks Pawl's pushes to the branch
	Rounds       int    // rounds that the server and the repository allow
	Untriggered  string // the trigger that the repository does not listen to; else empty
	LabelIgnored bool   // the label was there before, and watch.pulls does not count it
	Broken       bool   // the repository's configuration has errors
}

// blocksPush lists the types of ruleset rules that block every push of new commits. The quotations are from GitHub's
// REST reference, "Get rules for a branch".
var blocksPush = map[string]string{
	"update":                 `"Only allow users with bypass permission to update matching refs"`,
	"pull_request":           `"all commits be made to a non-target branch and submitted via a pull request"`,
	"required_status_checks": `"commits must first be pushed to another ref where the checks pass"`,
	"required_deployments":   `environments "must be successfully deployed to before refs can be pushed"`,
	"merge_queue":            `"Merges must be performed via a merge queue"`,
	"workflows":              `"all changes made to a targeted branch" must "pass the specified workflows"`,
	"code_scanning":          `tools "must provide code scanning results before the reference is updated"`,
}

// BlocksPush reports whether a branch with rules of these types refuses Pawl's pushes. Without a signing key, Pawl's
// commits lack the "verified signatures" that required_signatures demands. Other types do not block:
//
//   - creation, deletion, non_fast_forward: Pawl neither creates nor deletes the branch, and never force-pushes.
//   - required_linear_history: blocks only merges of the base. GitHub's refusal is reported.
//   - patterns of messages, emails, names, paths and sizes: may refuse a commit. GitHub's refusal is reported.
//   - copilot_code_review and types that Pawl does not know.
func BlocksPush(kinds []string, signs bool) bool {
	return slices.ContainsFunc(kinds, func(kind string) bool {
		if kind == "required_signatures" {
			return !signs
		}
		return blocksPush[kind] != ""
	})
}

// Refusal says why a pull request may not be watched, or nothing.
func (w Watchable) Refusal() string {
	switch {
	case w.Unread != "":
		return "GitHub did not show " + w.Unread
	case !w.Pull:
		return "this thread has no open pull request"
	case w.Fork:
		return "the pull request comes from a fork, and Pawl pushes only to branches of this repository"
	case w.Bot != "":
		return "the pull request was opened by the bot " + w.Bot + ", which is not in policy.allowed_bots"
	case w.Default:
		return "the pull request's branch is the default branch, which Pawl never pushes to"
	case w.Other != 0:
		return fmt.Sprintf("pull request #%d has the same branch and is watched; `/pawl unwatch` there ends that watch", w.Other)
	case w.Protected:
		return "branch " + w.Branch + " is protected"
	case w.Broken:
		return ".github/pawl.yml has errors"
	case w.LabelIgnored:
		return "`watch.pulls` in .github/pawl.yml counts the label only when it is added"
	case w.Untriggered != "":
		return "`triggers` in .github/pawl.yml does not list `" + w.Untriggered + "`"
	case w.Rounds <= 0:
		return "this server allows no unattended attempts (policy.unattended.max_attempts)"
	}
	return ""
}

// HeadCheck is the newest result of another App's check on a head commit.
type HeadCheck struct {
	Name     string
	Finished bool
	Failed   bool
}

// Head is a watched head commit.
type Head struct {
	Checks    []HeadCheck
	Required  []string // names of the checks that must pass before a merge
	Mergeable bool     // GitHub would merge it: its rules are met, including statuses that are not check runs
	Unstable  bool     // GitHub would merge it, but a status or a check has not passed
	Conflicts bool     // with the base
	Behind    bool     // a rule requires the base's newer commits
	Expects   bool     // earlier heads or the base have checks
	Failed    bool     // Pawl's own verification of this commit failed
	Waits     string   // why a user must act first; empty if not
	More      int      // the number of checks that Pawl reads, if there are more; else 0
	Unmerged  bool     // GitHub has not computed whether it would merge the commit
	Unread    string   // what GitHub refused to show; empty for nothing
}

// Counts lists the checks that decide: the required ones or, if none is known, all.
func (h Head) Counts() []HeadCheck {
	if len(h.Required) == 0 {
		return h.Checks
	}
	var all []HeadCheck
	for _, c := range h.Checks {
		if slices.Contains(h.Required, c.Name) {
			all = append(all, c)
		}
	}
	return all
}

// Lack is what keeps a commit from being ready. Why is empty if it is ready.
type Lack struct {
	Why    string
	Silent bool // no event reports when the lack ends
	// Unstable: all checks pass, but GitHub counts the commit as not passed.
	Unstable bool
}

// Lacks says what keeps the commit from being ready. Required checks that are not check runs are commit statuses. Only
// GitHub's own verdict covers them, and Pawl gets no events about them.
func (h Head) Lacks() Lack {
	why := h.checksLack()
	if why == "" {
		why = h.announcedLack()
	}
	if why != "" {
		return Lack{Why: why}
	}
	if why = h.unannouncedLack(); why != "" {
		return Lack{Why: why, Silent: true, Unstable: h.onlyUnstable()}
	}
	return Lack{}
}

// checksLack names a check that has not passed.
func (h Head) checksLack() string {
	for _, c := range h.Counts() {
		if !c.Finished {
			return "check " + c.Name + " has not finished"
		}
		if c.Failed {
			return "check " + c.Name + " fails"
		}
	}
	return ""
}

// announcedLack names a lack whose end an event reports.
func (h Head) announcedLack() string {
	switch {
	case h.Unread != "": // an hourly look notices when this ends
		return ""
	case h.More > 0:
		return fmt.Sprintf("it has more than %d checks, and Pawl reads no more", h.More)
	case h.Conflicts:
		return "it conflicts with the base"
	case h.Behind:
		return "it must contain the base's newer commits"
	case h.Expects && len(h.Checks) == 0:
		return "no check has reported"
	case h.Failed:
		return "Pawl's verification failed"
	case h.Waits != "":
		return h.Waits
	}
	return ""
}

// onlyUnstable reports whether GitHub counts the commit as not passed, and no required check is known. The checks have
// passed, so the cause is a commit status or Pawl's own check run.
func (h Head) onlyUnstable() bool { return h.Unstable && len(h.Required) == 0 }

// unannouncedLack names a lack whose end no event reports.
func (h Head) unannouncedLack() string {
	switch {
	case h.Unread != "":
		return "GitHub did not show " + h.Unread
	case h.Unmerged:
		return "GitHub has not computed whether it merges"
	case h.onlyUnstable():
		return "GitHub counts a status that has not passed"
	case h.Mergeable:
		return ""
	}
	for _, name := range h.Required {
		if !slices.ContainsFunc(h.Checks, func(c HeadCheck) bool { return c.Name == name }) {
			return "GitHub does not let it merge, and required check " + name + " may not have passed"
		}
	}
	return ""
}

// Pawl looks again at a head if no event reports when its lack ends. These are the bounds of each wait, and the time
// until Pawl gives up. Our choice.
const (
	lookAgainFirst = 10 * time.Minute
	lookAgainMost  = time.Hour
	lookAgainFor   = 24 * time.Hour
)

// LookAgain returns when to look again at a head commit. Each wait doubles the commit's age, between 10 minutes and an
// hour, for 24 hours. Zero means at the next event.
func LookAgain(appeared, now time.Time) time.Time {
	age := now.Sub(appeared)
	if age >= lookAgainFor {
		return time.Time{}
	}
	return now.Add(min(max(age, lookAgainFirst), lookAgainMost))
}

// LookAgainUnread returns when to look again after GitHub refused to show something: an hour later, for 24 hours.
func LookAgainUnread(appeared, now time.Time) time.Time {
	if now.Sub(appeared) >= lookAgainFor {
		return time.Time{}
	}
	return now.Add(lookAgainMost)
}

// AskAgain returns when to ask GitHub again for a result that has been pending since a time. Each wait doubles the time
// so far, between 5 seconds and 5 minutes. Zero means that it has taken an hour.
func AskAgain(since, now time.Time) time.Time {
	age := now.Sub(since)
	if age >= time.Hour {
		return time.Time{}
	}
	return now.Add(min(max(age, 5*time.Second), 5*time.Minute))
}
