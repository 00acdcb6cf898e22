package policy

import "slices"

// choose puts the candidate that is chosen to the front and says why. A rule or
// a person that named a backend leaves nothing to choose, and an attempt that
// goes on with what the one before it left stays with its backend while that is
// free.
func (f Facts) choose(candidates []Backend, d Decision) ([]Backend, Decision) {
	if f.Mode == "" || len(candidates) < 2 {
		return candidates, d
	}
	var options []Option
	for _, b := range candidates {
		masked := f.held(b)
		if masked == "" {
			masked = f.failing(b)
		}
		options = append(options, Option{Backend: b.Name, Masked: masked})
	}
	var known Learned
	if f.Learned != nil {
		known = *f.Learned
	}
	c := Choose(f.Mode, known.Arms(f.Context, options), f.Seed)
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
	d.Reasons = append(d.Reasons, c.Reasons...)
	return front(candidates, c.Chosen), d
}

// front is the list with one backend moved to its front.
func front(list []Backend, name string) []Backend {
	i := slices.IndexFunc(list, func(b Backend) bool { return b.Name == name })
	if i <= 0 {
		return list
	}
	return slices.Concat(list[i:i+1], list[:i], list[i+1:])
}
