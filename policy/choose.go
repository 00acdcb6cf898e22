package policy

import "slices"

type Mode string

const (
	// ModeFixed takes the first backend of the configured order.
	ModeFixed Mode = "fixed"
	// ModeShadow also takes the first backend, and reports the choice of ModeLearn.
	ModeShadow Mode = "shadow"
	// ModeLearn uses Thompson sampling.
	ModeLearn Mode = "learn"
	// ModeAuto, the default, is ModeLearn with two or more backends.
	ModeAuto Mode = "auto"
)

// Option is a backend with its model and effort. Masked is why it cannot be chosen now, such as an open breaker.
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

// Choice records how an attempt's backend was chosen, with all inputs. The same arms and seed give the same choice.
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

// choose puts the sampled candidate first and gives reasons. A backend named by a user or a rule wins. So does the
// run's backend while it is free, unless the attempt must differ.
func (f Facts) choose(candidates []Backend, d Decision) ([]Backend, Decision) {
	options := f.options(candidates)
	if f.Choose == nil || len(options) < 2 {
		return candidates, d
	}
	c := f.Choose(options)
	if c.Chosen == "" {
		return candidates, d
	}
	if name := f.stayWith(c, d, options); name != "" {
		return front(candidates, hasName(name)), d
	}
	d.Choice = &c
	d.Reasons = append(d.Reasons, Because(d.Rule, c.Reasons...)...)
	return front(candidates, hasName(c.Chosen)), d
}

// options lists the candidates' backends. A backend is free if one of its accounts is.
func (f Facts) options(candidates []Backend) (options []Option) {
	at := map[string]int{}
	for _, b := range candidates {
		why, _ := f.failing(b)
		h := f.held(b)
		if h != nil {
			why = h.why
		}
		i, known := at[b.Name]
		switch {
		case !known:
			at[b.Name] = len(options)
			options = append(options, Option{Backend: b.Name, Masked: why.String()})
		case h == nil && options[i].Masked != "":
			options[i].Masked = why.String()
		}
	}
	return options
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

func hasName(name string) func(Backend) bool {
	return func(b Backend) bool { return b.Name == name }
}

// front moves the selected backends before the others.
func front(list []Backend, first func(Backend) bool) []Backend {
	rest := slices.DeleteFunc(slices.Clone(list), first)
	chosen := slices.DeleteFunc(slices.Clone(list), func(b Backend) bool { return !first(b) })
	return slices.Concat(chosen, rest)
}
