package server

import (
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

func TestNotificationsFollowTheConfiguration(t *testing.T) {
	s := &Server{store: &store.Store{}, solver: &solver.Solver{}}
	notifier := s.notifier()
	for _, url := range []string{"https://chat.example.org/a", "https://chat.example.org/b"} {
		s.solver.Env.Use(&config.Server{Notify: config.Notify{URL: config.NewSecret(url)}})
		if got := notifier.URL(); got != url {
			t.Errorf("messages go to %s, want %s", got, url)
		}
	}
}
