package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// Limits of the operators' pages.
const (
	maxLevels     = 20
	maxDeliveries = 20
	maxOperated   = 20
)

type accountsData struct {
	frame
	Counts     []count
	Breakers   []entry
	Windows    []window
	Cooldowns  []entry
	Day        []entry           // last 24 hours: server, accounts, installations, repositories
	Deliveries []thread.Delivery // unhandled deliveries
	Done       []operated        // actions of users, newest first
	Charts     []chart
}

// window is one usage window of an account. Used is a share, at most 1.
type window struct {
	Account, Text, Class string
	Used                 float64
}

// entry is one line of a list: a linked name and its state. Href may be empty.
type entry struct {
	Name, Href, Text, Class string
	Act                     string // address of the button that closes the breaker, or empty
}

type operated struct {
	thread.Operated
	At time.Time
}

func (p *pages) readAccounts(ctx context.Context, r *http.Request) (any, error) {
	data := accountsData{frame: p.frame(r, "Accounts", "./")}
	stats, err := p.Store.Stats(ctx)
	if err != nil {
		return data, err
	}
	breakers, err := p.Store.Breakers(ctx)
	if err != nil {
		return data, err
	}
	meters, err := p.Store.Meters(ctx)
	if err != nil {
		return data, err
	}
	data.Windows = p.windows(meters, data.Now)
	cooldowns, err := p.Store.Cooldowns(ctx, "")
	if err != nil {
		return data, err
	}
	if data.Deliveries, err = p.Store.UnhandledDeliveries(ctx, maxDeliveries); err != nil {
		return data, err
	}
	used, err := p.Store.UsedByRepo(ctx, data.Now.Add(-policy.Day))
	if err != nil {
		return data, err
	}
	first := firstDay(data.Now)
	byDay, err := p.Store.UsedByDay(ctx, first.Add(-time.Microsecond))
	if err != nil {
		return data, err
	}
	data.Charts, _ = chartsBy(byDay, first, func(u store.DayUsed) string { return u.Account })
	log, err := p.Store.Events(ctx, thread.ServerLog(), 0)
	if err != nil {
		return data, err
	}
	data.Counts, data.Breakers, data.Cooldowns = counts(stats), p.breakerLines(breakers, data.Now), cooling(cooldowns, data.Now)
	for _, l := range p.Limits().Day(used, maxLevels) {
		h := entry{Name: render.Line(l.Level, maxName), Text: l.String()}
		if why, _ := l.Full(); why != "" {
			h.Class = "failed"
		}
		data.Day = append(data.Day, h)
	}
	shown, _ := newest(log, maxOperated)
	for _, e := range shown {
		o := operated{At: e.At}
		if read(e, &o.Operated) {
			data.Done = append(data.Done, o)
		}
	}
	return data, nil
}

func (p *pages) windows(meters map[string][]policy.Meter, now time.Time) []window {
	var all []window
	for _, account := range slices.Sorted(maps.Keys(meters)) {
		for _, m := range meters[account] {
			if !m.Known() {
				continue
			}
			w := window{Account: render.Line(account, maxName), Text: checkrun.Window(m.Window, now), Used: min(m.Used, 1)}
			if !m.Current(now) {
				w.Used, w.Class = 0, "dim"
			} else if m.Used >= p.Limits().Headroom.HoldAt {
				w.Class = "waiting"
			}
			all = append(all, w)
		}
	}
	return all
}

func (p *pages) breakerLines(all map[string]policy.Breaker, now time.Time) []entry {
	var out []entry
	for _, account := range slices.Sorted(maps.Keys(all)) {
		b := all[account]
		h := entry{Name: render.Line(account, maxName), Class: "waiting", Act: "accounts/" + url.PathEscape(account) + "/close"}
		state := "closed"
		reset, limited := b.Limited(now)
		_, open := b.Open(now, p.Limits().UsageLimit.MaxConsecutive)
		switch {
		case open:
			state, h.Class = "open", "failed"
		case limited:
			state = fmt.Sprintf("opens at %d", p.Limits().UsageLimit.MaxConsecutive)
		default:
			h.Class = "done"
		}
		h.Text = fmt.Sprintf("%d × %s in a row, %s", b.Consecutive, render.Spaced(render.Line(string(b.Kind), maxName)), state)
		if b.Consecutive == 0 {
			h.Text = "one thread reports " +
				render.Spaced(render.Line(string(b.Claim.Kind), maxName)) +
				", not confirmed by another thread"
		}
		switch {
		case !b.ResetsAt.IsZero() && !limited:
			h.Text += ", was reset at " + render.Instant(now, b.ResetsAt)
		case !reset.IsZero():
			h.Text += ", " + render.Left(now, reset)
		default:
			h.Text += ", reset unknown"
		}
		if b.Damage != "" {
			h.Text = render.Line(b.Damage, maxReason)
		}
		out = append(out, h)
	}
	return out
}

func cooling(all map[string][]thread.Cooldown, now time.Time) []entry {
	var out []entry
	for _, repo := range slices.Sorted(maps.Keys(all)) {
		for _, c := range all[repo] {
			h := entry{Name: render.Line(c.Backend, maxName) + " on " + render.Line(repo, maxName), Class: "failed",
				Text: render.Line(checkrun.Cooldown(c, now), maxReason)}
			if t, err := thread.Parse(c.Thread); err == nil {
				h.Href = href(t)
			}
			out = append(out, h)
		}
	}
	return out
}

type armsData struct {
	frame
	Learning solver.LearningReport
	Charts   []chart
}

func (p *pages) readArms(ctx context.Context, r *http.Request) (any, error) {
	learning, err := p.Learning(ctx)
	return armsData{frame: p.frame(r, "Backends", "./"), Learning: learning, Charts: armCharts(learning.Weeks)}, err
}
