package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/store"
)

// maxSkew is the tolerated difference of a machine's clock from the database's and from GitHub's. GitHub refuses
// the App's signatures more than a minute ahead.
const maxSkew = time.Minute

// CompareClocks says why a server with a clock that is ahead of another one, such as "GitHub's", claims nothing;
// nil if they agree within a minute.
func CompareClocks(other string, ahead time.Duration) error {
	const set = "set it, such as by systemd-timesyncd or chrony"
	switch {
	case ahead > maxSkew:
		return fmt.Errorf("this machine's clock is %s ahead of %s; %s", ahead.Round(time.Second), other, set)
	case ahead < -maxSkew:
		return fmt.Errorf("this machine's clock is %s behind %s; %s", -ahead.Round(time.Second), other, set)
	}
	return nil
}

// clockTrouble says why this server claims nothing; nil while the known clocks agree.
func (s *Server) clockTrouble() error {
	github, _ := s.githubClock()
	return errors.Join(CompareClocks("the database's", -s.store.Skew()), CompareClocks("GitHub's", github))
}

// agreed is the clock's state for /readyz and the metrics.
func (s *Server) agreed(context.Context) error {
	if err := s.clockTrouble(); err != nil {
		return fmt.Errorf("nothing is claimed: %w", err)
	}
	return nil
}

// clockWatch reports to the log and pawl status when the server's clock stops agreeing, and when it agrees again.
type clockWatch struct {
	*Server
	told time.Time // the last report of the trouble; zero for none
}

// toldAgain is how often lasting trouble is reported, toldHolds how long a report counts: the server may be gone.
const (
	toldAgain = time.Minute
	toldHolds = 3 * toldAgain
)

func (w *clockWatch) look(ctx context.Context) error {
	err := w.clockTrouble()
	switch {
	case err != nil && time.Since(w.told) >= toldAgain:
		w.told = time.Now()
		w.log.Error().Err(err).Msg("the clock is wrong; nothing is claimed")
		return w.tellClock(ctx, err.Error())
	case err == nil && !w.told.IsZero():
		w.told = time.Time{}
		w.log.Info().Msg("the clock agrees again; claiming work")
		return w.tellClock(ctx, "")
	}
	return nil
}

// WrongClock is a server that claims nothing because of its clock, and why.
type WrongClock struct {
	Server  string    `json:"server"`
	Trouble string    `json:"trouble"`
	At      time.Time `json:"at"` // the last report
}

const clocksKey = "wrong clocks"

// tellClock reports this server's trouble to users of other servers; an empty one withdraws it.
func (s *Server) tellClock(ctx context.Context, trouble string) error {
	return s.store.UpdateShared(ctx, clocksKey, func(now time.Time, old []byte) []byte {
		all := slices.DeleteFunc(wrongClocks(old, now), func(c WrongClock) bool { return c.Server == s.solver.Env.Node })
		if trouble != "" {
			all = append(all, WrongClock{s.solver.Env.Node, trouble, now})
		}
		next, _ := json.Marshal(all) // strings and times always marshal
		return next
	})
}

// WrongClocks are a database's servers that claim nothing because of their clocks.
func WrongClocks(ctx context.Context, db *store.Store) ([]WrongClock, error) {
	shared, err := db.ReadShared(ctx, clocksKey)
	return wrongClocks(shared, db.Now()), err
}

func wrongClocks(shared []byte, now time.Time) []WrongClock {
	all := []WrongClock{}
	if json.Unmarshal(shared, &all) != nil {
		return []WrongClock{} // no report yet
	}
	return slices.DeleteFunc(all, func(c WrongClock) bool { return now.Sub(c.At) >= toldHolds })
}
