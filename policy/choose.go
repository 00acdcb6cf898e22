package policy

import "slices"

type Mode string

const (
	// ModeFixed takes the first backend of the configured order.
	ModeFixed Mode = "fixed"
	// ModeShadow also takes the first one, and reports the choice of ModeLearn.
	ModeShadow Mode = "shadow"
	// ModeLearn uses Thompson sampling.
	ModeLearn Mode = "learn"
	// ModeAuto, the default, is ModeLearn with two or more backends.
	ModeAuto Mode = "auto"
)

// Option is a backend with its arm. Masked says why it cannot be chosen now: cooldown, breaker, configuration, pin.
type Option struct {
	Backend string `json:"backend"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
	// Escalated marks an arm at rung 3's effort, which is never chosen.
	Escalated bool   `json:"escalated,omitempty"`
	Masked    string `json:"masked,omitempty"`
}

type Sample struct {
	Backend string  `json:"backend"`
	Value   float64 `json:"value"`
	// Mean and Weight describe the sampled posterior.
	Mean   float64 `json:"mean"`
	Weight float64 `json:"weight"`
	Masked string  `json:"masked,omitempty"`
}

// Choice is an attempt's backend with all inputs. The same arms and seed give the same choice.
type Choice struct {
	Seed   uint64 `json:"seed"`
	Mode   Mode   `json:"mode"`   // never ModeAuto
	Chosen string `json:"chosen"` // empty if every arm is masked
	// Would is the sampled backend; empty in ModeFixed and if every arm is masked.
	Would    string   `json:"would,omitempty"`
	Explored bool     `json:"explored,omitempty"` // Would was chosen because it has few rewards
	Samples  []Sample `json:"samples,omitempty"`
	Reasons  []string `json:"reasons"`
}

// Context is an attempt's kind of work.
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

// choose puts the sampled candidate first and gives reasons. A named backend wins. So does the run's backend while it
// is free, unless the attempt must differ.
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

// stayWith returns the run's last backend if it is free and sampling chose another one. A switch would lose the
// provider's prompt cache.
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
