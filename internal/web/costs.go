package web

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
)

// chart shows an amount by day or week.
type chart struct {
	Name, Total, Most string // Most describes the highest bar
	Each              string // period of a bar
	Bars              []bar
}

// bar has a height from 0 to 100; an empty bar has no value.
type bar struct {
	X, Y, Height int
	When, Value  string
}

func (c *chart) add(at time.Time, height float64, value string) {
	b := bar{X: 10 * len(c.Bars), Y: 100, When: at.Format(time.DateOnly), Value: value}
	if height > 0 {
		b.Height = max(1, int(math.Round(100*height)))
		b.Y -= b.Height
	}
	c.Bars = append(c.Bars, b)
}

// Periods and sizes of the charts.
const (
	chartDays = 30
	maxCharts = 20
)

type costsData struct {
	frame
	Charts []chart
	Days   int
	More   int // omitted repositories
}

func (p *pages) readCosts(ctx context.Context, r *http.Request) (any, error) {
	data := costsData{frame: p.frame(r, "Costs", "./"), Days: chartDays}
	first := firstDay(data.Now)
	used, err := p.Store.UsedByDay(ctx, first.Add(-time.Microsecond))
	if err != nil {
		return nil, err
	}
	may := map[string]bool{}
	for _, u := range used {
		if _, asked := may[u.Repo]; !asked {
			if may[u.Repo], err = p.mayRead(ctx, who(r), u.Repo); err != nil {
				return nil, err
			}
		}
	}
	used = slices.DeleteFunc(used, func(u store.DayUsed) bool { return !may[u.Repo] })
	data.Charts, _ = chartsBy(used, first, func(store.DayUsed) string { return "all repositories" })
	repos, more := chartsBy(used, first, func(u store.DayUsed) string { return u.Repo })
	data.Charts, data.More = append(data.Charts, repos...), more
	return data, nil
}

func firstDay(now time.Time) time.Time { return now.Truncate(policy.Day).AddDate(0, 0, 1-chartDays) }

func add(to *store.DayUsed, u store.DayUsed) {
	to.USD, to.Tokens, to.Attempts = to.USD+u.USD, to.Tokens+u.Tokens, to.Attempts+u.Attempts
}

func tokens(n int64) string {
	if n == 0 {
		return "tokens unknown"
	}
	return number(int(n)) + " tokens"
}

func spentIn(u store.DayUsed) string {
	return render.Joined(
		", ",
		render.When(u.USD > 0, render.Dollars(u.USD)),
		tokens(u.Tokens),
		plural(u.Attempts, "attempt"),
	)
}

// chartsBy draws a chart per group of attempts, largest first, and returns how many it omitted.
func chartsBy(used []store.DayUsed, first time.Time, group func(store.DayUsed) string) (all []chart, more int) {
	days, totals := map[string]*[chartDays]store.DayUsed{}, map[string]*store.DayUsed{}
	for _, u := range used {
		g := group(u)
		if days[g] == nil {
			days[g], totals[g] = &[chartDays]store.DayUsed{}, &store.DayUsed{}
		}
		if n := int(u.Day.Sub(first) / policy.Day); n >= 0 && n < chartDays {
			add(&days[g][n], u)
		}
		add(totals[g], u)
	}
	groups := slices.SortedFunc(maps.Keys(totals), func(a, b string) int {
		x, y := totals[a], totals[b]
		return cmp.Or(cmp.Compare(y.USD, x.USD), cmp.Compare(y.Tokens, x.Tokens), cmp.Compare(a, b))
	})
	more = max(0, len(groups)-maxCharts)
	for _, g := range groups[:len(groups)-more] {
		all = append(all, draw(g, days[g][:], *totals[g], first))
	}
	return all, more
}

// draw makes a chart of dollars, or of tokens if no price is known.
func draw(name string, days []store.DayUsed, total store.DayUsed, first time.Time) chart {
	c := chart{Name: render.Line(name, maxName), Total: spentIn(total), Each: "Days"}
	value := func(d store.DayUsed) float64 {
		if total.USD > 0 {
			return d.USD
		}
		return float64(d.Tokens)
	}
	most := slices.MaxFunc(days, func(a, b store.DayUsed) int { return cmp.Compare(value(a), value(b)) })
	c.Most = "most on a day: " + spentIn(most)
	for i, d := range days {
		c.add(first.AddDate(0, 0, i), value(d)/max(value(most), 1e-9), render.When(d.Attempts > 0, spentIn(d)))
	}
	return c
}

// armCharts shows each backend's mean reward by week, oldest first.
func armCharts(weeks []learning.Week) (all []chart) {
	earned := map[string]map[int]learning.Earned{}
	for i, w := range weeks {
		for _, e := range w.Arms {
			if earned[e.Backend] == nil {
				earned[e.Backend] = map[int]learning.Earned{}
			}
			earned[e.Backend][i] = e
		}
	}
	for _, name := range slices.Sorted(maps.Keys(earned)) {
		c, rewards := chart{Name: render.Line(name, maxName), Most: "mean reward from 0 to 1", Each: "Weeks"}, 0
		for i := range slices.Backward(weeks) {
			e := earned[name][i]
			rewards += e.Rewards
			c.add(
				weeks[i].From,
				e.Mean,
				render.When(e.Rewards > 0, fmt.Sprintf("mean %.2f of %s", e.Mean, plural(e.Rewards, "reward"))),
			)
		}
		c.Total = plural(rewards, "reward")
		all = append(all, c)
	}
	return all
}
