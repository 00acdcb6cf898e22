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

// maxSkew is the tolerated clock difference. GitHub refuses signatures more than a minute ahead.
const maxSkew = time.Minute

// CompareClocks returns an error if another clock, such as "GitHub's", differs by more than a minute. Such a server
// claims nothing.
func CompareClocks(other string, ahead time.Duration) error {
	const set = "set it, for example with systemd-timesyncd or chrony"
	switch {
	case ahead > maxSkew:
		return fmt.Errorf("this machine's clock is %s ahead of %s; %s", ahead.Round(time.Second), other, set)
	case ahead < -maxSkew:
		return fmt.Errorf("this machine's clock is %s behind %s; %s", -ahead.Round(time.Second), other, set)
	}
	return nil
}

// clockTrouble returns why this server claims nothing, or nil.
func (s *Server) clockTrouble() error {
	github, _ := s.githubClock()
	return errors.Join(CompareClocks("the database's", -s.store.Skew()), CompareClocks("GitHub's", github))
}

func (s *Server) agreed(context.Context) error {
	if err := s.clockTrouble(); err != nil {
		return fmt.Errorf("nothing is claimed: %w", err)
	}
	return nil
}

// clockWatch reports changes of the clock's state to the log and pawl status.
type clockWatch struct {
	*Server
	reported time.Time // last report, or zero
}

// reportInterval repeats reports of lasting trouble; a report counts for reportTTL, since the server may be gone.
const (
	reportInterval = time.Minute
	reportTTL      = 3 * reportInterval
)

func (w *clockWatch) look(ctx context.Context) error {
	err := w.clockTrouble()
	switch {
	case err != nil && time.Since(w.reported) >= reportInterval:
		w.reported = time.Now()
		w.log.Error().Err(err).Msg("the clock is wrong; nothing is claimed")
		return w.reportClock(ctx, err.Error())
	case err == nil && !w.reported.IsZero():
		w.reported = time.Time{}
		w.log.Info().Msg("the clock agrees again; claiming work")
		return w.reportClock(ctx, "")
	}
	return nil
}

// WrongClock is a server that claims nothing because of its clock.
type WrongClock struct {
	Server  string    `json:"server"`
	Trouble string    `json:"trouble"`
	At      time.Time `json:"at"` // last report
}

const clocksKey = "wrong clocks"

// reportClock stores this server's clock trouble for pawl status on any server; empty trouble removes it.
func (s *Server) reportClock(ctx context.Context, trouble string) error {
	return s.store.UpdateShared(ctx, clocksKey, func(now time.Time, old []byte) []byte {
		all := slices.DeleteFunc(wrongClocks(old, now), func(c WrongClock) bool { return c.Server == s.solver.Env.Node })
		if trouble != "" {
			all = append(all, WrongClock{s.solver.Env.Node, trouble, now})
		}
		next, _ := json.Marshal(all) // never fails
		return next
	})
}

// WrongClocks lists servers that claim nothing because of their clocks.
func WrongClocks(ctx context.Context, db *store.Store) ([]WrongClock, error) {
	shared, err := db.ReadShared(ctx, clocksKey)
	return wrongClocks(shared, db.Now()), err
}

func wrongClocks(shared []byte, now time.Time) []WrongClock {
	all := []WrongClock{}
	if json.Unmarshal(shared, &all) != nil {
		return []WrongClock{} // no report yet
	}
	return slices.DeleteFunc(all, func(c WrongClock) bool { return now.Sub(c.At) >= reportTTL })
}
