package cluster

import (
	"context"
	"encoding/json"
	"time"

	"github.com/pawlbot/pawl/solver/thread"
)

const (
	// dutySoon is how long a starting node waits after a duty was last done. A server that restarts repeatedly must
	// not do the duty at every start.
	dutySoon = 15 * time.Second
	// dutyHold is how long Begin or Hold excludes other nodes. Duties must tolerate repetition.
	dutyHold = thread.LeaseTime
)

// Shared is the part of the store that all nodes share.
type Shared interface {
	// UpdateShared replaces a blob in a transaction, unless f returns nil. now is the database's time.
	UpdateShared(ctx context.Context, key string, f func(now time.Time, old []byte) (next []byte)) error
}

// Duty is a periodic task that one node does for all, such as asking GitHub for missed deliveries. A node that does the
// duty keeps it while it runs.
type Duty struct {
	shared     Shared
	name, node string
	every      time.Duration
	began      time.Time // this node's first call, by the database's clock
}

type dutyRow struct {
	By   string    `json:"by"` // node that did the duty at Last
	Last time.Time `json:"last"`
	Hold time.Time `json:"held,omitzero"` // end of By's hold; zero when done
}

// NewDuty returns a named duty for one node. A starting node waits until 15 s after any node last did the duty. A single
// node does every duty; the stored time then only delays it after restarts.
func NewDuty(s Shared, name, node string, every time.Duration) *Duty {
	return &Duty{shared: s, name: "duty " + name, node: node, every: every}
}

// Begin reports whether this node does the duty now. Call it every 15 s or so, and End afterwards.
func (d *Duty) Begin(ctx context.Context) (mine bool, err error) {
	err = d.update(ctx, func(now time.Time, row *dutyRow) bool {
		if d.began.IsZero() {
			d.began = now
		}
		if mine = d.due(now, *row); mine {
			*row = dutyRow{By: d.node, Last: now, Hold: now.Add(dutyHold)}
		}
		return mine
	})
	return mine && err == nil, err
}

func (d *Duty) due(now time.Time, row dutyRow) bool {
	since := now.Sub(row.Last)
	switch {
	case since < 0: // the clock was set back
		return true
	case now.Before(row.Hold) && row.By != d.node:
		return false
	case row.Last.Before(d.began):
		return since >= dutySoon
	case row.By != d.node:
		return since >= d.every+2*dutySoon
	}
	return since >= d.every
}

// Hold excludes other nodes for 30 s from now.
func (d *Duty) Hold(ctx context.Context) error {
	return d.update(ctx, func(now time.Time, row *dutyRow) bool {
		row.Hold = now.Add(dutyHold)
		return row.By == d.node
	})
}

// End ends a try; the next one follows one interval after Begin.
func (d *Duty) End(ctx context.Context) error {
	return d.update(ctx, func(_ time.Time, row *dutyRow) bool {
		row.Hold = time.Time{}
		return row.By == d.node
	})
}

func (d *Duty) update(ctx context.Context, f func(now time.Time, row *dutyRow) bool) error {
	return d.shared.UpdateShared(ctx, d.name, func(now time.Time, old []byte) []byte {
		var row dutyRow
		if json.Unmarshal(old, &row) != nil {
			row = dutyRow{} // as if never done
		}
		if !f(now, &row) {
			return nil
		}
		next, _ := json.Marshal(row) // cannot fail
		return next
	})
}
