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
	// Runaway is the third severe loop in a week of one arm on one repository. No Judge gives it: it is one of a Rest.
	Runaway Class = "runaway"
)

// After maxSevere severe loops within severeWithin an arm is not used on a repository again until a person says so. The
// numbers were given.
const (
	maxSevere    = 3
	severeWithin = 7 * 24 * time.Hour
)

// Rest keeps an arm, a backend with its model and effort, from a repository after an edit loop: until a time, and as a
// Runaway until a person orders an attempt. Zero keeps it from nothing.
type Rest struct {
	Class  Class       `json:"class"`
	At     time.Time   `json:"at"` // when the loop ended
	Until  time.Time   `json:"until"`
	Severe []time.Time `json:"severe,omitempty"` // the severe loops of the week, without those that a person has passed over
}

// Lifted is the rest after an order of a person at a time.
func Lifted(at time.Time) Rest { return Rest{Class: None, At: at, Until: at} }

// After is the rest after one that the same arm had.
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

// Holds reports whether the rest keeps its arm from work at a time.
func (r Rest) Holds(now time.Time) bool { return r.Class == Runaway || now.Before(r.Until) }

// Edits counts what an agent did to files: edit operations, distinct files, the operations on the path that
// was edited most often, and what shows that they went in circles. A Circles fills it. Logs of earlier
// versions hold only the first four; then nothing is known of what the edits held.
type Edits struct {
	Operations    int    `json:"operations"`
	Files         int    `json:"files"`
	MaxRepeat     int    `json:"max_repeat"`
	MaxRepeatPath string `json:"max_repeat_path"`
	// Seen counts the edits whose content, or the state of the file after them,
	// is known; MaxRepeatSeen those of them on MaxRepeatPath.
	Seen          int `json:"seen"`
	MaxRepeatSeen int `json:"max_repeat_seen"`
	// Again counts edits that had been made before as well, Returned others after
	// which the file was as it had been.
	Again    int `json:"again"`
	Returned int `json:"returned"`
	// Churned counts the edits of files of whose changed lines at most a sixth remained,
	// CirclePath is the one of them with the most edits.
	Churned      int    `json:"churned"`
	CirclePath   string `json:"circle_path,omitempty"`
	SameFailures int    `json:"same_failures"` // how often one call failed with the same output
	// Failures is how often one call, FailedCall, failed with whatever output.
	Failures   int    `json:"failures,omitempty"`
	FailedCall string `json:"failed_call,omitempty"`
	// SameCalls is how often one call, SameCall, had the same result with no edit in between.
	SameCalls int    `json:"same_calls,omitempty"`
	SameCall  string `json:"same_call,omitempty"`
	// SameChecks is how often one call, SameCheck, had the same result again after another edit.
	SameChecks int    `json:"same_checks,omitempty"`
	SameCheck  string `json:"same_check,omitempty"`
}

// Repetition says that the same call had the same result again and again; empty where it did not.
func (e Edits) Repetition() string {
	if e.SameCalls < ManyCalls {
		return ""
	}
	return fmt.Sprintf("the same call had the same result %d times with no edit in between: %s", e.SameCalls, CallName(e.SameCall))
}

// The kinds of loops.
const (
	LoopEdits    = "edits"            // edits that made again what had been there
	LoopChurn    = "churn"            // edits that came to nothing
	LoopFailures = "failures"         // a call that failed again and again
	LoopCalls    = "repeated_calls"   // a call with the same result, with no edit in between
	LoopChecks   = "unchanging_check" // a call with the same result after different edits
)

// Loop is one way in which an attempt went in circles.
type Loop struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	What  string `json:"what,omitempty"` // the file or the call
}

// Loops lists how an attempt went in circles, whether or not it is an edit loop.
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

// failures is how often one call failed, with the same output or so often that the output does not matter.
func (e Edits) failures() int {
	if e.Failures >= manyFailed {
		return e.Failures
	}
	return e.SameFailures
}

// Repeats is the call that an attempt made again and again to no effect, the worse where there are two. It is a loop of
// its own, whatever the attempt edited.
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

// Blind reports whether too little is known of what the edits held: of less
// than half of them, or of those on the path that was edited most.
func (e Edits) Blind() bool {
	return 2*e.Seen < e.Operations || 2*e.MaxRepeatSeen < e.MaxRepeat
}

// Severity is the verdict on the edits of one attempt. Grade is meaningful only when Class is not none.
type Severity struct {
	Class    Class
	Cooldown time.Duration
	Grade    float64
	Reasons  []string
}

// Judge classifies the edits of one attempt. They can be a loop from the published counts on; whether they
// are is decided by what shows that they went in circles, or by the counts alone where it is not known what
// the edits held. How bad it is, is decided by the counts: one of them is enough for the higher class.
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

// triggered reports whether edits are as many as the published trigger.
func (l SeverityLimits) triggered(e Edits) bool {
	return e.Operations >= l.MinEdits && e.MaxRepeat >= l.MinRepeats
}

// noLoop is the verdict on edits that are no loop.
func noLoop(why string) Severity { return Severity{Class: None, Reasons: []string{why}} }

// class says how bad a loop is, and where the line of that class is.
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

// reach reports whether the edits, or those on one file, are as many as a line.
func (e Edits) reach(edits, repeats int) bool {
	return e.Operations >= edits || e.MaxRepeat >= repeats
}

// Loop is the verdict on an attempt that has ended: work that passes its verify commands is no loop, however it came about.
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

// verifiedWork reports whether the agent came to its own end, if only to a crash, with work that passes its verify commands.
func (r Receipt) verifiedWork() bool {
	if r.Ending != Completed && r.Ending != Crashed {
		return false
	}
	return r.Progress() && r.CommandsPassed()
}

// circling reports whether what is known of edits shows that they went in circles, and
// what it shows; nothing where too few are known, or too few were made to tell.
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

// manyOf reports whether n of the edits show a loop: they are at least 1/share of all, or enough for a loop of their own.
func (l SeverityLimits) manyOf(e Edits, n, share int) bool {
	if n < l.MinRepeats {
		return false
	}
	return share*n >= e.Operations || n >= l.MinEdits
}

// certainTimes is how far beyond the severe line an attempt must be whose edits
// are known by their counts alone, before it is cut off. Healthy sessions reach
// the severe line (25 edits of one file in 39), never twice it.
const certainTimes = 2

// CutOff reports whether a running attempt is a severe loop beyond doubt, and
// the verdict. Counts alone are in doubt up to twice the severe line.
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
