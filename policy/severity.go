package policy

import (
	"fmt"
	"time"
)

// Class is how bad an edit loop is.
type Class string

// The classes, from harmless to bad.
const (
	None     Class = "none"
	Mild     Class = "mild"
	Moderate Class = "moderate"
	Severe   Class = "severe"
)

// Edits counts what an agent did to files: edit operations, distinct files, the
// operations on the path that was edited most often, and what shows that they
// went in circles. A Circles fills it. Logs of earlier versions hold only the
// first four; then nothing is known of what the edits held.
type Edits struct {
	Operations    int    `json:"operations"`
	Files         int    `json:"files"`
	MaxRepeat     int    `json:"max_repeat"`
	MaxRepeatPath string `json:"max_repeat_path"`
	// Seen counts the edits whose content, or the state of the file after them,
	// is known; MaxRepeatSeen those of them on MaxRepeatPath.
	Seen          int `json:"seen"`
	MaxRepeatSeen int `json:"max_repeat_seen"`
	// Again counts edits that were made a short while before as well, Returned
	// others after which the file was as it had been, or got removed lines back.
	Again    int `json:"again"`
	Returned int `json:"returned"`
	// Rounds is how often the edit or file state came that came most often.
	Rounds int `json:"rounds"`
	// CirclePath is the file that goes in circles most, with its edits that led
	// back (CircleEdits) and all of its edits (CircleOf); empty where none does.
	CirclePath  string `json:"circle_path,omitempty"`
	CircleEdits int    `json:"circle_edits"`
	CircleOf    int    `json:"circle_of"`
	// SameFailures is how often one call failed with the same output.
	SameFailures int `json:"same_failures"`
}

// Blind reports whether too little is known of what the edits held: of less
// than half of them, or of those on the path that was edited most.
func (e Edits) Blind() bool {
	return 2*e.Seen < e.Operations || 2*e.MaxRepeatSeen < e.MaxRepeat
}

// Severity is the verdict on the edits of one attempt. Grade is meaningful only
// when Class is not none.
type Severity struct {
	Class    Class
	Cooldown time.Duration
	Grade    float64
	Reasons  []string
}

// Judge classifies the edits of one attempt. Whether they are a loop is decided
// by what shows that they went in circles, or by the counts alone where it is
// not known what the edits held; how bad it is, by the counts: one of them is
// enough for the higher class.
func (l SeverityLimits) Judge(e Edits) Severity {
	seen := fmt.Sprintf("%s, %d of them on %s", Plural(e.Operations, "edit"), e.MaxRepeat, e.MaxRepeatPath)
	why, loop := l.circling(e)
	switch {
	case !loop:
		return Severity{Class: None, Reasons: []string{
			fmt.Sprintf("%s, at most %d on one file; %s", Plural(e.Operations, "edit"), e.MaxRepeat, why)}}
	case e.Operations >= l.SevereEdits || e.MaxRepeat >= l.SevereRepeats:
		return Severity{Severe, l.SevereCooldown, l.SevereGrade, []string{seen, why,
			fmt.Sprintf("severe from %d edits or %d on one file", l.SevereEdits, l.SevereRepeats)}}
	case e.Operations >= l.ModerateEdits || e.MaxRepeat >= l.ModerateRepeats:
		return Severity{Moderate, l.ModerateCooldown, l.ModerateGrade, []string{seen, why,
			fmt.Sprintf("moderate from %d edits or %d on one file", l.ModerateEdits, l.ModerateRepeats)}}
	}
	return Severity{Mild, l.MildCooldown, l.MildGrade, []string{seen, why,
		fmt.Sprintf("mild below %d edits and %d on one file", l.ModerateEdits, l.ModerateRepeats)}}
}

// circling reports whether edits are a loop, and why or why not.
func (l SeverityLimits) circling(e Edits) (why string, loop bool) {
	back := e.Again + e.Returned
	enough := e.Operations >= l.MinEdits && e.MaxRepeat >= l.MinRepeats
	switch {
	case e.CircleEdits >= minCircled && circledShare*e.CircleEdits >= e.CircleOf && e.CircleOf >= l.MinRepeats:
		return fmt.Sprintf("in circles: %d of %d edits of %s only made again what had been there", e.CircleEdits, e.CircleOf, e.CirclePath), true
	case back >= l.MinRepeats && circledShare*back >= e.Operations && e.Rounds >= minRounds:
		return fmt.Sprintf("in circles: %d of %s only made again what had been there", back, Plural(e.Operations, "edit")), true
	case e.Rounds >= manyRounds && e.Operations >= l.MinRepeats:
		return fmt.Sprintf("in circles: the same edit came %d times", e.Rounds), true
	case e.SameFailures >= manyFailures && e.MaxRepeat >= l.MinRepeats && (enough || e.Blind()):
		return fmt.Sprintf("in circles: the same call failed %d times with the same output", e.SameFailures), true
	case e.Blind() && enough:
		return "what they held is not known, so the counts decide", true
	case e.Blind() || e.Operations == 0:
		return fmt.Sprintf("a loop starts at %d edits with %d on one file", l.MinEdits, l.MinRepeats), false
	}
	return fmt.Sprintf("%d of them made again what had been there, which is no loop", back), false
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
	known := e
	known.Seen, known.MaxRepeatSeen = e.Operations, e.MaxRepeat
	if _, circling := l.circling(known); circling {
		return v, true
	}
	return v, e.Operations >= certainTimes*l.SevereEdits || e.MaxRepeat >= certainTimes*l.SevereRepeats
}
