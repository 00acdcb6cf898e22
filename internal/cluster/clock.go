package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rs/zerolog"
)

// maxSkew is the tolerated clock difference. GitHub refuses signatures more than a minute ahead.
const maxSkew = time.Minute

// CompareClocks returns an error if another clock, such as "GitHub's", differs by more than a minute. A server
// with such a clock claims nothing.
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

// Clock compares this machine's clock with the database's and GitHub's. A single node's database uses this clock.
type Clock struct {
	Store interface {
		Shared
		// Skew returns how far the database's clock is ahead of this machine's.
		Skew() time.Duration
	}
	GitHub func() (ahead time.Duration, known bool) // this machine's clock minus GitHub's
	Node   string
	Log    zerolog.Logger

	reported time.Time // last report, or zero
}

// Trouble returns why this server claims nothing, or nil.
func (c *Clock) Trouble() error {
	github, _ := c.GitHub()
	return errors.Join(CompareClocks("the database's", -c.Store.Skew()), CompareClocks("GitHub's", github))
}

// Lasting trouble is reported again after reportInterval. Reports expire after reportTTL: the server may be gone.
const (
	reportInterval = time.Minute
	reportTTL      = 3 * reportInterval
)

// Look reports clock trouble, and its end, to the log and pawl status. Do not call it concurrently.
func (c *Clock) Look(ctx context.Context) error {
	err := c.Trouble()
	switch {
	case err != nil && time.Since(c.reported) >= reportInterval:
		c.reported = time.Now()
		c.Log.Error().Err(err).Msg("the clock is wrong; nothing is claimed")
		return c.report(ctx, err.Error())
	case err == nil && !c.reported.IsZero():
		c.reported = time.Time{}
		c.Log.Info().Msg("the clock agrees again; claiming work")
		return c.report(ctx, "")
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

// report stores this server's clock trouble for pawl status on any server; empty trouble removes it.
func (c *Clock) report(ctx context.Context, trouble string) error {
	return c.Store.UpdateShared(ctx, clocksKey, func(now time.Time, old []byte) []byte {
		all := slices.DeleteFunc(wrongClocks(old, now), func(w WrongClock) bool { return w.Server == c.Node })
		if trouble != "" {
			all = append(all, WrongClock{c.Node, trouble, now})
		}
		next, _ := json.Marshal(all) // never fails
		return next
	})
}

// Reader reads what all nodes share.
type Reader interface {
	ReadShared(ctx context.Context, key string) ([]byte, error)
	Now() time.Time
}

// WrongClocks lists servers that claim nothing because of their clocks.
func WrongClocks(ctx context.Context, r Reader) ([]WrongClock, error) {
	shared, err := r.ReadShared(ctx, clocksKey)
	return wrongClocks(shared, r.Now()), err
}

func wrongClocks(shared []byte, now time.Time) []WrongClock {
	all := []WrongClock{}
	if json.Unmarshal(shared, &all) != nil {
		return []WrongClock{} // no report yet
	}
	return slices.DeleteFunc(all, func(c WrongClock) bool { return now.Sub(c.At) >= reportTTL })
}
