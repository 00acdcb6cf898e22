package policy

import (
	"fmt"
	"slices"
	"time"
)

type Class string

// The classes, from harmless to bad.
const (
	None     Class = "none"
	Mild     Class = "mild"
	Moderate Class = "moderate"
	Severe   Class = "severe"
	// Runaway is the third severe loop of one arm on one repository within a week. Only a Rest has it, no verdict of
	// Judge.
	Runaway Class = "runaway"
)

// After maxSevere severe loops within severeWithin an arm is not used on a repository until a user commands it. The
// numbers were given.
const (
	maxSevere    = 3
	severeWithin = 7 * 24 * time.Hour
)

// Rest is an arm's cooldown on a repository after an edit loop: until a time or, for a Runaway, until a user
// commands an attempt. The zero value is no cooldown.
type Rest struct {
	Class  Class       `json:"class"`
	At     time.Time   `json:"at"` // when the loop ended
	Until  time.Time   `json:"until"`
	Severe []time.Time `json:"severe,omitempty"` // the week's severe loops since a user's last command
}

// Lifted is the cooldown after a user's command at a time.
func Lifted(at time.Time) Rest { return Rest{Class: None, At: at, Until: at} }

// After merges the arm's previous cooldown into this one.
func (r Rest) After(old Rest) Rest {
	if r.Class == None {
		return r
	}
	severe := slices.Clone(old.Severe)
	if r.Class == Severe {
		severe = append(severe, r.At)
	}
	r.Severe = slices.DeleteFunc(severe, func(t time.Time) bool { return !t.After(r.At.Add(-severeWithin)) })
	if old.Class == Runaway || len(r.Severe) >= maxSevere {
		r.Class = Runaway
	}
	return r
}

// Holds reports whether the arm is in cooldown.
func (r Rest) Holds(now time.Time) bool { return r.Class == Runaway || now.Before(r.Until) }

// Edits counts an agent's edits: operations, distinct files, operations on the most edited path, and the signs of
// circles. Circles fills it. Logs of earlier versions hold only the first four.
type Edits struct {
	Operations    int    `json:"operations"`
	Files         int    `json:"files"`
	MaxRepeat     int    `json:"max_repeat"`
	MaxRepeatPath string `json:"max_repeat_path"`
	// Seen counts edits with known content or file state; MaxRepeatSeen counts them on MaxRepeatPath.
	Seen          int `json:"seen"`
	MaxRepeatSeen int `json:"max_repeat_seen"`
	// Again counts repeated edits, Returned those that returned a file to an earlier state.
	Again    int `json:"again"`
	Returned int `json:"returned"`
	// Churned counts the edits of files that kept at most a sixth of their changed lines. CirclePath is the one with
	// the most edits.
	Churned      int    `json:"churned"`
	CirclePath   string `json:"circle_path,omitempty"`
	SameFailures int    `json:"same_failures"` // how often one call failed with the same output
	// Failures is how often one call, FailedCall, failed with any output.
	Failures   int    `json:"failures,omitempty"`
	FailedCall string `json:"failed_call,omitempty"`
	// SameCalls is how often one call, SameCall, had the same result with no edit in between.
	SameCalls int    `json:"same_calls,omitempty"`
	SameCall  string `json:"same_call,omitempty"`
	// SameChecks is how often one call, SameCheck, had the same result after another edit.
	SameChecks int    `json:"same_checks,omitempty"`
	SameCheck  string `json:"same_check,omitempty"`
}

// Repetition describes a call that had the same result again and again; empty for none.
func (e Edits) Repetition() string {
	if e.SameCalls < ManyCalls {
		return ""
	}
	return fmt.Sprintf("the same call had the same result %d times with no edit in between: %s", e.SameCalls, CallName(e.SameCall))
}

const (
	LoopEdits    = "edits"            // edits that repeat earlier content
	LoopChurn    = "churn"            // edits that came to nothing
	LoopFailures = "failures"         // a call that fails repeatedly
	LoopCalls    = "repeated_calls"   // a call with the same result, with no edit in between
	LoopChecks   = "unchanging_check" // a call with the same result after different edits
)

// Loop is one way in which an attempt went in circles.
type Loop struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	What  string `json:"what,omitempty"` // the file or the call
}

// Loops lists how an attempt went in circles, whether or not it counts as an edit loop.
func (l SeverityLimits) Loops(e Edits) []Loop {
	all := []Loop{}
	add := func(kind string, count, least int, what string) {
		if count >= least {
			all = append(all, Loop{kind, count, what})
		}
	}
	add(LoopEdits, e.Again+e.Returned, l.MinRepeats, e.MaxRepeatPath)
	add(LoopChurn, e.Churned, l.MinRepeats, e.CirclePath)
	add(LoopFailures, e.failures(), manyFailures, e.FailedCall)
	add(LoopCalls, e.SameCalls, ManyCalls, e.SameCall)
	if l.triggered(e) {
		add(LoopChecks, e.SameChecks, manyChecks, e.SameCheck)
	}
	return all
}

// failures is how often one call failed, with the same output or often enough with any.
func (e Edits) failures() int {
	if e.Failures >= manyFailed {
		return e.Failures
	}
	return e.SameFailures
}

// Repeats is the call that an attempt repeated without effect; the worse of two. It is a loop whatever the attempt
// edited.
func (e Edits) Repeats() (loop Loop, found bool) {
	failed := Loop{LoopFailures, e.failures(), e.FailedCall}
	called := Loop{LoopCalls, e.SameCalls, e.SameCall}
	switch {
	case failed.Count >= manyFailures && failed.Count >= called.Count:
		return failed, true
	case called.Count >= ManyCalls:
		return called, true
	}
	return Loop{}, false
}

// Blind reports whether too few edits have known content: less than half of all, or of those on the most edited
// path.
func (e Edits) Blind() bool {
	return 2*e.Seen < e.Operations || 2*e.MaxRepeatSeen < e.MaxRepeat
}

// Severity is the verdict on one attempt's edits. Grade is meaningful only if Class is not none.
type Severity struct {
	Class    Class
	Cooldown time.Duration
	Grade    float64
	Reasons  []string
}

// Judge classifies one attempt's edits. They can be a loop from the published counts on. The signs of circles
// decide whether they are; the counts decide alone if the edits' content is unknown. Either count is enough for the
// higher class.
func (l SeverityLimits) Judge(e Edits) Severity {
	edits := Plural(e.Operations, "edit")
	why, circles := l.circling(e)
	if !l.triggered(e) {
		if why != "" {
			why += "; "
		}
		why += fmt.Sprintf("a loop starts at %d edits with %d on one file", l.MinEdits, l.MinRepeats)
		return noLoop(fmt.Sprintf("%s, at most %d on one file; %s", edits, e.MaxRepeat, why))
	}
	if !circles {
		if !e.Blind() {
			return noLoop(fmt.Sprintf("%s, at most %d on one file; %s", edits, e.MaxRepeat, why))
		}
		why = "what they held is not known, so the counts decide"
	}
	v, line := l.class(e)
	seen := fmt.Sprintf("%s, %d of them on %s", edits, e.MaxRepeat, e.MaxRepeatPath)
	v.Reasons = []string{seen, why, line}
	return v
}

// triggered reports whether the counts reach the published trigger.
func (l SeverityLimits) triggered(e Edits) bool {
	return e.Operations >= l.MinEdits && e.MaxRepeat >= l.MinRepeats
}

func noLoop(why string) Severity { return Severity{Class: None, Reasons: []string{why}} }

// class returns the class of a loop, and its threshold.
func (l SeverityLimits) class(e Edits) (v Severity, line string) {
	switch {
	case e.reach(l.SevereEdits, l.SevereRepeats):
		v = Severity{Class: Severe, Cooldown: l.SevereCooldown, Grade: l.SevereGrade}
		line = fmt.Sprintf("severe from %d edits or %d on one file", l.SevereEdits, l.SevereRepeats)
	case e.reach(l.ModerateEdits, l.ModerateRepeats):
		v = Severity{Class: Moderate, Cooldown: l.ModerateCooldown, Grade: l.ModerateGrade}
		line = fmt.Sprintf("moderate from %d edits or %d on one file", l.ModerateEdits, l.ModerateRepeats)
	default:
		v = Severity{Class: Mild, Cooldown: l.MildCooldown, Grade: l.MildGrade}
		line = fmt.Sprintf("mild below %d edits and %d on one file", l.ModerateEdits, l.ModerateRepeats)
	}
	return v, line
}

// reach reports whether the edits, or those on one file, reach a threshold.
func (e Edits) reach(edits, repeats int) bool {
	return e.Operations >= edits || e.MaxRepeat >= repeats
}

// Loop is the verdict on a finished attempt: work that passes its verify commands is no loop.
func (l SeverityLimits) Loop(r Receipt) Severity {
	if r.Untold() {
		return noLoop("files changed, but the agent's output tells no edits, so a loop of edits would not be seen")
	}
	v := l.Judge(r.Edits)
	if v.Class == None || !r.verifiedWork() {
		return v
	}
	return Severity{Class: None, Reasons: append(v.Reasons[:2:2], "the verify commands passed, so it is no loop")}
}

// verifiedWork reports whether the agent ended by itself, or crashed, with work that passes its verify commands.
func (r Receipt) verifiedWork() bool {
	if r.Ending != Completed && r.Ending != Crashed {
		return false
	}
	return r.Progress() && r.CommandsPassed()
}

// circling reports whether the edits went in circles, and why; false if too few are known or were made.
func (l SeverityLimits) circling(e Edits) (why string, circles bool) {
	back := e.Again + e.Returned
	switch {
	case l.manyOf(e, back, circledShare):
		return fmt.Sprintf("in circles: %d of %s only made again what had been there", back, Plural(e.Operations, "edit")), true
	case l.manyOf(e, e.Churned, churnedShare):
		return fmt.Sprintf("in circles: %d of %s came to nothing, most of them on %s", e.Churned, Plural(e.Operations, "edit"), e.CirclePath), true
	case e.SameFailures >= manyFailures:
		return fmt.Sprintf("in circles: the same call failed %d times with the same output", e.SameFailures), true
	case l.triggered(e) && e.SameChecks >= manyChecks:
		return fmt.Sprintf("in circles: the same call had the same result again after %d edits: %s", e.SameChecks, CallName(e.SameCheck)), true
	case e.Blind():
		return "", false
	case e.Operations < l.MinRepeats:
		return "", false
	}
	return fmt.Sprintf("%d of them made again what had been there, which is no loop", back), false
}

// manyOf reports whether n edits show a loop: at least 1/share of all, or enough alone.
func (l SeverityLimits) manyOf(e Edits, n, share int) bool {
	if n < l.MinRepeats {
		return false
	}
	return share*n >= e.Operations || n >= l.MinEdits
}

// certainTimes multiplies the severe threshold for running attempts whose edits are known by counts alone. Healthy
// sessions reach the threshold (25 edits of one file in 39), never twice it.
const certainTimes = 2

// CutOff reports whether a running attempt is certainly a severe loop, and the verdict.
func (l SeverityLimits) CutOff(e Edits) (Severity, bool) {
	v := l.Judge(e)
	if v.Class != Severe {
		return v, false
	}
	// A check that stays green shows a loop only in hindsight.
	counts := e
	counts.SameChecks = 0
	if _, circles := l.circling(counts); circles {
		return v, true
	}
	return v, e.reach(certainTimes*l.SevereEdits, certainTimes*l.SevereRepeats)
}
