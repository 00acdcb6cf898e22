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
	// ModeAuto, the default, is shadow until two backends have enough
	// rewards each (learning.Choose has the number), then learn.
	ModeAuto Mode = "auto"
)

// Option is a backend that may be chosen from. Masked is why it may not be taken now (a cooldown, a breaker,
// the repository's configuration, another one is pinned); empty when it may.
type Option struct {
	Backend string `json:"backend"`
	Masked  string `json:"masked,omitempty"`
}

// Level is how specific a look-up is.
type Level string

// The levels, from the most specific on.
const (
	Exact      Level = "exact"    // the same repository, category and size
	ByCategory Level = "category" // the same category, all repositories and sizes
	Global     Level = "global"
)

type Sample struct {
	Backend string  `json:"backend"`
	Value   float64 `json:"value"`
	// Good and Bad are the posterior that was drawn from.
	Good   float64 `json:"good"`
	Bad    float64 `json:"bad"`
	Level  Level   `json:"level"`
	Masked string  `json:"masked,omitempty"`
}

// Choice is which backend an attempt gets, with all that it rests on: the same
// arms and the same seed give the same choice.
type Choice struct {
	Seed   uint64 `json:"seed"`
	Mode   Mode   `json:"mode"`   // the mode that was in force; never ModeAuto
	Chosen string `json:"chosen"` // empty where every arm is masked
	// Would is what sampling chooses; empty in ModeFixed and where every arm is masked.
	Would   string   `json:"would,omitempty"`
	Level   Level    `json:"level,omitempty"` // the level of the chosen arm's posterior
	Samples []Sample `json:"samples,omitempty"`
	Reasons []string `json:"reasons"`
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
// leaves nothing to choose, and an attempt that goes on with what the one before it left stays with its
// backend while that is free.
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
	if last, ok := f.last(); ok && c.Mode == ModeLearn && len(f.Fresh) == 0 && !d.Different {
		i := slices.IndexFunc(options, func(o Option) bool { return o.Backend == last.Backend && o.Masked == "" })
		if i >= 0 {
			return front(candidates, last.Backend), d
		}
	}
	d.Choice = &c
	d.Reasons = append(d.Reasons, Because(d.Rule, c.Reasons...)...)
	return front(candidates, c.Chosen), d
}

func front(list []Backend, name string) []Backend {
	i := slices.IndexFunc(list, func(b Backend) bool { return b.Name == name })
	if i <= 0 {
		return list
	}
	return slices.Concat(list[i:i+1], list[:i], list[i+1:])
}
