package config

import (
	"fmt"
	"regexp"
	"slices"
	"time"
)

// Node describes this server among those that share the database.
type Node struct {
	// Labels name the machine's features. A repository's environment.runs_on names the labels that its attempts need.
	Labels []string `yaml:"labels"`
	// Prefer is how long this server leaves an attempt to another server that has the repository's caches or the session.
	Prefer time.Duration `yaml:"prefer"`
}

const (
	// With a poll interval of at most 1.5 s, defaultPrefer delays an attempt by less than 5 s. Our choice.
	defaultPrefer = 3 * time.Second
	maxPrefer     = time.Minute
)

// maxLabels limits the labels of a node or a repository. Our choice: a node serves each subset of its labels, and 8
// labels have 256 subsets.
const maxLabels = 8

var labelForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)

func (s *source) validateLabels(key string, labels []string) {
	s.addIf(len(labels) > maxLabels, key, "has %d labels; use at most %d", len(labels), maxLabels)
	for i, l := range labels {
		at := fmt.Sprintf("%s[%d]", key, i)
		s.addIf(!labelForm.MatchString(l), at, "%s is not a label; use up to 40 of a-z, 0-9, dot, dash and underscore, such as gpu", quote(l))
		s.addIf(slices.Index(labels, l) < i, at, "%s is listed twice", quote(l))
	}
}
