package policy

import "slices"

type Mode string

const (
	// ModeFixed takes the first of the configured order.
	ModeFixed Mode = "fixed"
	// ModeShadow takes the first, too, and says what would have been chosen.
	ModeShadow Mode = "shadow"
	// ModeLearn takes what Thompson sampling chooses.
	ModeLearn Mode = "learn"
	// ModeAuto, the default, is learn where there are two backends or more.
	ModeAuto Mode = "auto"
)

// Option is a backend that may be chosen from, with what it runs. Masked is why it may not be taken now (a cooldown, a breaker,
// the repository's configuration, another one is pinned); empty when it may.
type Option struct {
	Backend string `json:"backend"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
	// Escalated says that it runs with the effort of the last recovery. Such an arm is never chosen: the ladder asks for it.
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

// Choice is which backend an attempt gets, with all that it rests on: the same
// arms and the same seed give the same choice.
type Choice struct {
	Seed   uint64 `json:"seed"`
	Mode   Mode   `json:"mode"`   // the mode that was in force; never ModeAuto
	Chosen string `json:"chosen"` // empty where every arm is masked
	// Would is what sampling chooses; empty in ModeFixed and where every arm is masked.
	Would    string   `json:"would,omitempty"`
	Explored bool     `json:"explored,omitempty"` // Would has few rewards, and is taken for that
	Samples  []Sample `json:"samples,omitempty"`
	Reasons  []string `json:"reasons"`
}

// Context is what kind of work an attempt was given. The zero value is work of which nothing is known.
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

// choose puts the candidate that is chosen to the front and says why. A rule or a person that named a backend
// leaves nothing to choose, and a run stays with its backend while that is free, unless it shall try differently.
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

// stayWith is the free backend of the run's last attempt, where another one is chosen; empty for none. The choice is
// made at the start of a run: switching within it costs what the provider keeps of the prompt.
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
