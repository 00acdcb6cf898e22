package policy

import (
	"slices"
	"testing"
	"time"
)

// Learning chooses the backend at the start of a run. Later in the run it chooses only if a different approach is needed or
// the backend is not available.
func TestRunKeepsItsBackend(t *testing.T) {
	takes := func(mode Mode, name string) func(*Facts) {
		return func(f *Facts) {
			f.Choose = func(options []Option) Choice {
				for i := range options {
					options[i].Model = "a model" // as the solver does
				}
				if i := slices.IndexFunc(options, func(o Option) bool { return o.Backend == name && o.Masked == "" }); i < 0 {
					return Choice{Mode: mode, Chosen: options[0].Backend, Reasons: []string{"the backend is kept"}}
				}
				return Choice{Mode: mode, Chosen: name, Reasons: []string{name + " drew highest"}}
			}
		}
	}
	byCodex := timedOut() // an attempt of this run on codex
	for _, c := range []struct {
		name  string
		facts Facts
		want  string
		drawn bool // whether learning drew the backend for this attempt
	}{
		{"a run begins on the chosen backend", given().asked("").with(takes(ModeLearn, "claude")), "claude", true},
		{"a run keeps its backend", given(byCodex).with(takes(ModeLearn, "claude")), "codex", false},
		{"a run keeps its backend after more feedback", given(byCodex).asked("").with(takes(ModeLearn, "claude")), "codex", false},
		{"a cooldown leads to a new choice", given(byCodex).with(takes(ModeLearn, "claude")).with(func(f *Facts) {
			f.Backends[0].Cooldown.Class, f.Backends[0].Cooldown.Until = Mild, f.Now.Add(time.Hour)
		}), "claude", true},
		{"a new run leads to a new choice", given(byCodex).asked("").with(takes(ModeLearn, "claude")).with(func(f *Facts) { f.Run++ }), "claude", true},
		{"a pinned backend is not drawn", given().asked("").with(takes(ModeLearn, "codex")).with(func(f *Facts) { f.Pinned = "claude" }), "claude", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Next(c.facts)
			if d.Action != DoAttempt || d.Backend != c.want || (d.Choice != nil) != c.drawn {
				t.Errorf("%s of %s, choice %+v (%s); want %s, drawn %t", d.Action, d.Backend, d.Choice, d.Reasons, c.want, c.drawn)
			}
		})
	}
	different := Decision{Action: DoAttempt, Rule: RuleStagnation, Different: true}
	f := given(byCodex).with(takes(ModeLearn, "claude"))
	if got, d := f.choose(f.Backends, different); got[0].Name != "claude" || d.Choice == nil {
		t.Errorf("an attempt that must differ stays on %s", got[0].Name)
	}
}
