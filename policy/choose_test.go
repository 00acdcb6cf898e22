package policy

import (
	"slices"
	"testing"
	"time"
)

// TestRunKeepsItsBackend: what was learned chooses at the start of a run, and after that only where something different is
// wanted or the backend is held back.
func TestRunKeepsItsBackend(t *testing.T) {
	takes := func(mode Mode, name string) func(*Facts) {
		return func(f *Facts) {
			f.Choose = func(options []Option) Choice {
				for i := range options {
					options[i].Model = "a model" // as the solver does
				}
				if i := slices.IndexFunc(options, func(o Option) bool { return o.Backend == name && o.Masked == "" }); i < 0 {
					return Choice{Mode: mode, Chosen: options[0].Backend, Reasons: []string{"it is left"}}
				}
				return Choice{Mode: mode, Chosen: name, Reasons: []string{name + " drew highest"}}
			}
		}
	}
	byCodex := timedOut() // of the run, on codex
	for _, c := range []struct {
		name  string
		facts Facts
		want  string
		drawn bool // the choice is the attempt's
	}{
		{"a run begins with what is chosen", given().asked("").with(takes(ModeLearn, "claude")), "claude", true},
		{"it stays where it began", given(byCodex).with(takes(ModeLearn, "claude")), "codex", false},
		{"also when somebody says more", given(byCodex).asked("").with(takes(ModeLearn, "claude")), "codex", false},
		{"a cooldown ends that", given(byCodex).with(takes(ModeLearn, "claude")).with(func(f *Facts) {
			f.Backends[0].Cooldown.Class, f.Backends[0].Cooldown.Until = Mild, f.Now.Add(time.Hour)
		}), "claude", true},
		{"so does a run of its own", given(byCodex).asked("").with(takes(ModeLearn, "claude")).with(func(f *Facts) { f.Run++ }), "claude", true},
		{"a person's choice leaves none", given().asked("").with(takes(ModeLearn, "codex")).with(func(f *Facts) { f.Pinned = "claude" }), "claude", false},
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
		t.Errorf("what shall go differently stays with %s", got[0].Name)
	}
}
