package policy

import (
	"fmt"
	"slices"
	"time"
)

type Class string

// The classes, from harmless to worst.
const (
	None     Class = "none"
	Mild     Class = "mild"
	Moderate Class = "moderate"
	Severe   Class = "severe"
	// Runaway is an arm's third severe loop on one repository within a week. Only a Cooldown has this class.
	Runaway Class = "runaway"
)

// After maxSevere severe loops within severeWithin, only a user's command starts the arm on the repository.
const (
	maxSevere    = 3
	severeWithin = 7 * 24 * time.Hour
)

// Cooldown is an arm's cooldown on a repository after an edit loop. A Runaway lasts until a user's command forces an
// attempt.
type Cooldown struct {
	Class  Class       `json:"class"`
	At     time.Time   `json:"at"` // the loop's end
	Until  time.Time   `json:"until"`
	Severe []time.Time `json:"severe,omitempty"` // the week's severe loops since a user's last command
	// Damage is why the stored cooldown cannot be read. It then lasts until a user's command, like a Runaway.
	Damage string `json:"damage,omitempty"`
}

// Check returns why a stored cooldown is invalid, or nil.
func (c Cooldown) Check() error {
	switch c.Class {
	case "", None, Mild, Moderate, Severe, Runaway:
		return nil
	}
	return fmt.Errorf("its class is %q", c.Class)
}

// Unreadable returns the cooldown for a stored one that cannot be read.
func Unreadable(damage string) Cooldown { return Cooldown{Class: Runaway, Damage: damage} }

// Lifted returns the cleared cooldown after a user's command.
func Lifted(at time.Time) Cooldown { return Cooldown{Class: None, At: at, Until: at} }

// After returns the cooldown merged with the arm's previous one.
func (c Cooldown) After(old Cooldown) Cooldown {
	if c.Class == None {
		return c
	}
	if old.Damage != "" {
		return old
	}
	severe := slices.Clone(old.Severe)
	if c.Class == Severe {
		severe = append(severe, c.At)
	}
	c.Severe = slices.DeleteFunc(severe, func(t time.Time) bool { return !t.After(c.At.Add(-severeWithin)) })
	if old.Class == Runaway || len(c.Severe) >= maxSevere {
		c.Class = Runaway
	}
	return c
}

// Holds reports whether the cooldown is active.
func (c Cooldown) Holds(now time.Time) bool { return c.Class == Runaway || now.Before(c.Until) }

// Edits counts an agent's edit operations, distinct files, edits of the most edited path, and signs of circling. Logs
// of older versions have only the first four fields.
type Edits struct {
	Operations    int    `json:"operations"`
	Files         int    `json:"files"`
	MaxRepeat     int    `json:"max_repeat"`
	MaxRepeatPath string `json:"max_repeat_path"`
	// Seen counts edits with known content or state; MaxRepeatSeen, such edits of MaxRepeatPath.
	Seen          int `json:"seen"`
	MaxRepeatSeen int `json:"max_repeat_seen"`
	// Again counts repeated edits; Returned, edits that restored an earlier state.
	Again    int `json:"again"`
	Returned int `json:"returned"`
	// Churned counts edits of files that kept at most a sixth of their changed lines. CirclePath has most of these
	// edits.
	Churned      int    `json:"churned"`
	CirclePath   string `json:"circle_path,omitempty"`
	SameFailures int    `json:"same_failures"` // the most failures of one call with the same output
	// Failures counts failures of FailedCall with any output.
	Failures   int    `json:"failures,omitempty"`
	FailedCall string `json:"failed_call,omitempty"`
	// SameCalls counts equal results of SameCall with no edit in between.
	SameCalls int    `json:"same_calls,omitempty"`
	SameCall  string `json:"same_call,omitempty"`
	// SameChecks counts equal results of SameCheck after another edit.
	SameChecks int    `json:"same_checks,omitempty"`
	SameCheck  string `json:"same_check,omitempty"`
}

// Repetition describes a call with the same result many times; empty for none.
func (e Edits) Repetition() string {
	if e.SameCalls < ManyCalls {
		return ""
	}
	return fmt.Sprintf("the same call had the same result %d times with no edit in between: %s", e.SameCalls, CallName(e.SameCall))
}

const (
	LoopEdits    = "edits"            // edits that repeat earlier content
	LoopChurn    = "churn"            // edits without a remaining change
	LoopFailures = "failures"         // a call that fails repeatedly
	LoopCalls    = "repeated_calls"   // a call with the same result and no edit in between
	LoopChecks   = "unchanging_check" // a call with the same result after different edits
)

// Loop is one sign of circling.
type Loop struct {
	Kind  string `json:"kind"`
	Count int    `json:"count"`
	What  string `json:"what,omitempty"` // the file or the call
}

// Loops lists the signs of circling, even if the attempt is not an edit loop.
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

// failures returns the most failures of one call: with any output if they reach manyFailed, else with the same output.
func (e Edits) failures() int {
	if e.Failures >= manyFailed {
		return e.Failures
	}
	return e.SameFailures
}

// Repeats returns the worst call that the attempt repeated without effect, with or without edits.
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

// Blind reports whether most edits, or most edits of the most edited path, have unknown content.
func (e Edits) Blind() bool {
	return 2*e.Seen < e.Operations || 2*e.MaxRepeatSeen < e.MaxRepeat
}

// Severity is the verdict on one attempt's edits. Grade is set only if Class is not None.
type Severity struct {
	Class    Class
	Cooldown time.Duration
	Grade    float64
	Reasons  []string
}

// Judge classifies edits that reach the published counts and go in circles. If the edits' content is unknown, the
// counts decide. Either count is enough for a higher class.
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
		why = "the edits' content is unknown, so only the counts decide"
	}
	v, line := l.class(e)
	seen := fmt.Sprintf("%s, %d of them on %s", edits, e.MaxRepeat, e.MaxRepeatPath)
	v.Reasons = []string{seen, why, line}
	return v
}

// triggered reports whether both counts reach the published threshold.
func (l SeverityLimits) triggered(e Edits) bool {
	return e.Operations >= l.MinEdits && e.MaxRepeat >= l.MinRepeats
}

func noLoop(why string) Severity { return Severity{Class: None, Reasons: []string{why}} }

// class returns a loop's class, and its threshold in words.
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

func (e Edits) reach(edits, repeats int) bool {
	return e.Operations >= edits || e.MaxRepeat >= repeats
}

// Loop judges a finished attempt. Work that passes its verify commands is not a loop.
func (l SeverityLimits) Loop(r Receipt) Severity {
	if r.Unreported() {
		return noLoop("files changed, but the agent's output reports no edits, so an edit loop would not be detected")
	}
	v := l.Judge(r.Edits)
	if v.Class == None || !r.verifiedWork() {
		return v
	}
	return Severity{Class: None, Reasons: append(v.Reasons[:2:2], "the verify commands passed, so it is not a loop")}
}

// verifiedWork reports whether the agent ended by itself, or crashed, with work that passes its verify commands.
func (r Receipt) verifiedWork() bool {
	if r.Ending != Completed && r.Ending != Crashed {
		return false
	}
	return r.Progress() && r.CommandsPassed()
}

// circling reports whether the attempt goes in circles, and why or why not. why is empty if too few edits are known.
func (l SeverityLimits) circling(e Edits) (why string, circles bool) {
	back := e.Again + e.Returned
	switch {
	case l.manyOf(e, back, circledShare):
		return fmt.Sprintf("in circles: %d of %s only restored earlier content", back, Plural(e.Operations, "edit")), true
	case l.manyOf(e, e.Churned, churnedShare):
		return fmt.Sprintf("in circles: %d of %s had no lasting effect, most of them on %s", e.Churned, Plural(e.Operations, "edit"), e.CirclePath), true
	case e.SameFailures >= manyFailures:
		return fmt.Sprintf("in circles: the same call failed %d times with the same output", e.SameFailures), true
	case l.triggered(e) && e.SameChecks >= manyChecks:
		return fmt.Sprintf("in circles: the same call had the same result again after %d edits: %s", e.SameChecks, CallName(e.SameCheck)), true
	case e.Blind():
		return "", false
	case e.Operations < l.MinRepeats:
		return "", false
	}
	return fmt.Sprintf("%d of them restored earlier content, which is not a loop", back), false
}

// manyOf reports whether n edits are a loop: at least MinRepeats, and either 1/share of all edits or MinEdits.
func (l SeverityLimits) manyOf(e Edits, n, share int) bool {
	if n < l.MinRepeats {
		return false
	}
	return share*n >= e.Operations || n >= l.MinEdits
}

// certainTimes multiplies the severe threshold for running attempts known only by counts. Healthy sessions reach the
// threshold (25 of 39 edits on one file), but never twice the threshold.
const certainTimes = 2

// CutOff returns the verdict on a running attempt, and whether to end it as a severe loop.
func (l SeverityLimits) CutOff(e Edits) (Severity, bool) {
	v := l.Judge(e)
	if v.Class != Severe {
		return v, false
	}
	// An unchanging check shows a loop only after the attempt's end.
	counts := e
	counts.SameChecks = 0
	if _, circles := l.circling(counts); circles {
		return v, true
	}
	return v, e.reach(certainTimes*l.SevereEdits, certainTimes*l.SevereRepeats)
}
