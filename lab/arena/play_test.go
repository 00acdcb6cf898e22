package arena

import (
	"strings"
	"testing"
)

// The bots play in groups that share a server. make test-all plays a few of each group.
func TestArenaBotsCannotMakePawlRunAway(t *testing.T) {
	t.Parallel()
	for _, group := range []struct {
		name                     string
		few                      int
		perRepository, perThread int
		bots                     []bot
	}{
		{"talkers", 2, 100, 60, talkers},
		{"timekeepers", 0, 100, 60, timekeepers},
		{"pretenders", 0, 12, 8, pretenders},
		{"editors", 1, 100, 60, editors},
		{"checkers", 1, 100, 60, checkers},
		{"reviewers", 1, 100, 60, reviewers},
		{"watchers", 1, 100, 60, watchers},
		{"workers", 1, 100, 60, workers},
		{"multipliers", 0, 12, 60, multipliers},
		{"agents", 1, 100, 60, agents},
		{"spinners", 0, 100, 60, spinners},
	} {
		if !*whole && group.few == 0 {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			if !*whole {
				group.bots = group.bots[:group.few]
			}
			a := newArena(t, group.perRepository, group.perThread, group.bots)
			a.play()
			table := a.check()
			if *whole {
				t.Log("\n" + strings.Join(table, "\n"))
			}
		})
	}
}
