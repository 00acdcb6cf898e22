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

// Edits counts what an agent did to files: edit operations as its stream
// reports them, distinct files, and the operations on the path that was edited
// most often.
type Edits struct {
	Operations    int    `json:"operations"`
	Files         int    `json:"files"`
	MaxRepeat     int    `json:"max_repeat"`
	MaxRepeatPath string `json:"max_repeat_path,omitempty"`
}

// Severity is the verdict on the edits of one attempt. Grade is meaningful only
// when Class is not none.
type Severity struct {
	Class    Class
	Cooldown time.Duration
	Grade    float64
	Reasons  []string
}

// Judge classifies the edits of one attempt. Both trigger counts must be
// reached before it is a loop at all; from there one count is enough for the
// higher class.
func (l SeverityLimits) Judge(e Edits) Severity {
	if e.Operations < l.MinEdits || e.MaxRepeat < l.MinRepeats {
		return Severity{Class: None, Reasons: []string{
			fmt.Sprintf("%s, at most %d on one file; a loop starts at %d edits with %d on one file",
				plural(e.Operations, "edit"), e.MaxRepeat, l.MinEdits, l.MinRepeats)}}
	}
	seen := fmt.Sprintf("%s, %d of them on %s", plural(e.Operations, "edit"), e.MaxRepeat, e.MaxRepeatPath)
	switch {
	case e.Operations >= l.SevereEdits || e.MaxRepeat >= l.SevereRepeats:
		return Severity{Severe, l.SevereCooldown, l.SevereGrade, []string{seen,
			fmt.Sprintf("severe from %d edits or %d on one file", l.SevereEdits, l.SevereRepeats)}}
	case e.Operations >= l.ModerateEdits || e.MaxRepeat >= l.ModerateRepeats:
		return Severity{Moderate, l.ModerateCooldown, l.ModerateGrade, []string{seen,
			fmt.Sprintf("moderate from %d edits or %d on one file", l.ModerateEdits, l.ModerateRepeats)}}
	}
	return Severity{Mild, l.MildCooldown, l.MildGrade, []string{seen,
		fmt.Sprintf("mild from %d edits with %d on one file", l.MinEdits, l.MinRepeats)}}
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return fmt.Sprintf("%d %ss", n, word)
}
