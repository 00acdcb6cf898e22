package cluster

import (
	"slices"
	"testing"
	"time"
)

func TestNodeIsDeadAfterAMinimumAbsence(t *testing.T) {
	type look struct {
		at     time.Duration
		absent []string
		dead   []string
	}
	for name, looks := range map[string][]look{
		"no absence":               {{0, nil, nil}, {time.Second, nil, nil}},
		"a kill":                   {{0, []string{"b"}, nil}, {time.Second, []string{"b"}, nil}, {2 * time.Second, []string{"b"}, []string{"b"}}},
		"a reconnection":           {{0, []string{"b"}, nil}, {time.Second, nil, nil}, {2 * time.Second, []string{"b"}, nil}, {3 * time.Second, []string{"b"}, nil}},
		"one of two returns":       {{0, []string{"b", "c"}, nil}, {time.Second, []string{"c"}, nil}, {2 * time.Second, []string{"c"}, []string{"c"}}},
		"the database restarted":   {{0, []string{"a", "b"}, nil}, {time.Second, []string{"a", "b"}, nil}, {2 * time.Second, []string{"b"}, nil}, {3 * time.Second, nil, nil}},
		"this node returned first": {{0, []string{"a", "b"}, nil}, {time.Second, []string{"b"}, nil}, {14 * time.Second, []string{"b"}, nil}, {15 * time.Second, []string{"b"}, []string{"b"}}},
		"a failed removal":         {{0, []string{"b"}, nil}, {2 * time.Second, []string{"b"}, []string{"b"}}, {3 * time.Second, []string{"b"}, []string{"b"}}},
	} {
		t.Run(name, func(t *testing.T) {
			w := watch{self: "a"}
			began := time.Now()
			for _, l := range looks {
				if got := w.dead(l.absent, began.Add(l.at)); !slices.Equal(got, l.dead) {
					t.Errorf("after %s with %q absent: %q are dead, want %q", l.at, l.absent, got, l.dead)
				}
			}
		})
	}
}
