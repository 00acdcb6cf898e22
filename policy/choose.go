package policy

import "slices"

type Mode string

const (
	// ModeFixed takes the first backend of the configured order.
	ModeFixed Mode = "fixed"
	// ModeShadow also takes the first one, and reports the choice of ModeLearn.
	ModeShadow Mode = "shadow"
	// ModeLearn chooses by Thompson sampling.
	ModeLearn Mode = "learn"
	// ModeAuto, the default, is learn with two or more backends.
	ModeAuto Mode = "auto"
)

// Option is a backend that may be chosen, with its arm. Masked is why it may not be taken now: a cooldown, a
// breaker, the repository's configuration, or another pinned backend. It is empty if it may.
type Option struct {
	Backend string `json:"backend"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
	// Escalated marks an arm at the effort of rung 3. It is never chosen: the ladder asks for it.
	Escalated bool   `json:"escalated,omitempty"`
	Masked    string `json:"masked,omitempty"`
}

type Sample struct {
	Backend string  `json:"backend"`
	Value   float64 `json:"value"`
	// Mean and Weight are the posterior that was drawn from.
	Mean   float64 `json:"mean"`
	Weight float64 `json:"weight"`
	Masked string  `json:"masked,omitempty"`
}

// Choice is the backend of an attempt, with all inputs: the same arms and the same seed give the same choice.
type Choice struct {
	Seed   uint64 `json:"seed"`
	Mode   Mode   `json:"mode"`   // never ModeAuto
	Chosen string `json:"chosen"` // empty if every arm is masked
	// Would is what sampling chooses; empty in ModeFixed and if every arm is masked.
	Would    string   `json:"would,omitempty"`
	Explored bool     `json:"explored,omitempty"` // Would has few rewards, and was chosen for that
	Samples  []Sample `json:"samples,omitempty"`
	Reasons  []string `json:"reasons"`
}

// Context is the kind of work of an attempt. The zero value is unknown.
type Context struct {
	Repo     string   `json:"repo"` // owner/repo
	Category Category `json:"category"`
	Size     Size     `json:"size"`
}

type Category string

const (
	Bug        Category = "bug"
	Feature    Category = "feature"
	Docs       Category = "docs"
	Test       Category = "test"
	Refactor   Category = "refactor"
	Dependency Category = "dependency"
	Chore      Category = "chore"
	Other      Category = "other"
)

type Size string

const (
	Small  Size = "small"
	Medium Size = "medium"
	Large  Size = "large"
)

// choose puts the chosen candidate first and says why. It does not choose if a rule or a user named a backend, or
// while the run's backend is free, unless the attempt must differ.
func (f Facts) choose(candidates []Backend, d Decision) ([]Backend, Decision) {
	if f.Choose == nil || len(candidates) < 2 {
		return candidates, d
	}
	var options []Option
	for _, b := range candidates {
		why, _ := f.failing(b)
		if h := f.held(b); h != nil {
			why = h.why
		}
		options = append(options, Option{Backend: b.Name, Masked: why.String()})
	}
	c := f.Choose(options)
	if c.Chosen == "" {
		return candidates, d
	}
	if name := f.stayWith(c, d, options); name != "" {
		return front(candidates, name), d
	}
	d.Choice = &c
	d.Reasons = append(d.Reasons, Because(d.Rule, c.Reasons...)...)
	return front(candidates, c.Chosen), d
}

// stayWith is the free backend of the run's last attempt if sampling chose another one; empty for none. The choice
// is made once per run: a switch loses the provider's prompt cache.
func (f Facts) stayWith(c Choice, d Decision, options []Option) string {
	if c.Mode == ModeFixed || c.Mode == ModeShadow {
		return ""
	}
	if d.Different {
		return ""
	}
	last, ok := f.last()
	if !ok || last.Backend == c.Chosen {
		return ""
	}
	free := func(o Option) bool { return o.Backend == last.Backend && o.Masked == "" }
	if !slices.ContainsFunc(options, free) {
		return ""
	}
	return last.Backend
}

func front(list []Backend, name string) []Backend {
	i := slices.IndexFunc(list, func(b Backend) bool { return b.Name == name })
	if i <= 0 {
		return list
	}
	return slices.Concat(list[i:i+1], list[:i], list[i+1:])
}
