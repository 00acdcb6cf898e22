package web

import (
	"cmp"
	"context"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
)

// chart is what a repository used in the last days, one bar a day.
type chart struct {
	Name, Total, Most string // Most is the highest day
	Bars              []bar
}

// bar is one day. Its height is a part of 100 of the highest of its chart.
type bar struct {
	X, Y, Height int
	Day          time.Time
	Attempts     int
	Value        string
}

// What the charts of costs show: as long as what attempts used is kept, and the repositories that used most.
const (
	chartDays = 30
	maxCharts = 20
)

type costsData struct {
	frame
	Charts []chart
	Days   int
	More   int // repositories that are not shown
}

func (p *pages) costs(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTime)
	defer cancel()
	data := costsData{frame: p.frame(r, "Costs", "./"), Days: chartDays}
	first := data.Now.Truncate(policy.Day).AddDate(0, 0, 1-chartDays)
	used, err := p.Store.UsedByDay(ctx, first.Add(-time.Microsecond))
	if err != nil {
		p.unavailable(w, r, err)
		return
	}
	days, totals := map[string][]dayUsed{}, map[string]dayUsed{}
	for _, u := range used {
		if _, known := days[u.Repo]; !known {
			if ok, err := p.mayRead(ctx, who(r), u.Repo); err != nil {
				p.unavailable(w, r, err)
				return
			} else if !ok {
				continue
			}
			days[u.Repo] = make([]dayUsed, chartDays)
		}
		for _, sum := range []string{u.Repo, everything} {
			if days[sum] == nil {
				days[sum] = make([]dayUsed, chartDays)
			}
			if n := int(u.Day.Sub(first) / policy.Day); n >= 0 && n < chartDays {
				days[sum][n] = days[sum][n].plus(u.USD, u.Tokens, u.Attempts)
			}
			totals[sum] = totals[sum].plus(u.USD, u.Tokens, u.Attempts)
		}
	}
	repos := slices.SortedFunc(maps.Keys(totals), func(a, b string) int { return totals[a].compare(totals[b], a, b) })
	data.More = max(0, len(repos)-maxCharts)
	for _, repo := range repos[:len(repos)-data.More] {
		data.Charts = append(data.Charts, draw(repo, days[repo], totals[repo], first))
	}
	p.render(w, http.StatusOK, "costs.html", data)
}

// everything is the sum of all repositories that a person may read. It comes first, and no repository is called so.
const everything = "all repositories"

type dayUsed struct {
	usd      float64
	tokens   int64
	attempts int
}

func (d dayUsed) plus(usd float64, tokens int64, attempts int) dayUsed {
	return dayUsed{d.usd + usd, d.tokens + tokens, d.attempts + attempts}
}

// compare puts what used most first.
func (d dayUsed) compare(o dayUsed, a, b string) int {
	switch {
	case a == everything:
		return -1
	case b == everything:
		return 1
	}
	return cmp.Or(cmp.Compare(o.usd, d.usd), cmp.Compare(o.tokens, d.tokens), cmp.Compare(a, b))
}

func (d dayUsed) String() string {
	return text.Joined(", ", text.When(d.usd > 0, text.Dollars(d.usd)), number(int(d.tokens))+" tokens", plural(d.attempts, "attempt"))
}

// draw makes the bars of one chart: dollars, or tokens where no price is known.
func draw(name string, days []dayUsed, total dayUsed, first time.Time) chart {
	c := chart{Name: text.Line(name, maxName), Total: total.String()}
	value := func(d dayUsed) float64 {
		if total.usd > 0 {
			return d.usd
		}
		return float64(d.tokens)
	}
	most := 0.0
	for _, d := range days {
		if v := value(d); v > most {
			most, c.Most = v, d.String()
		}
	}
	for i, d := range days {
		b := bar{X: 10 * i, Day: first.AddDate(0, 0, i), Attempts: d.attempts, Value: d.String()}
		if most > 0 {
			b.Height = int(100*value(d)/most + 0.5)
			if value(d) > 0 {
				b.Height = max(b.Height, 1)
			}
		}
		b.Y = 100 - b.Height
		c.Bars = append(c.Bars, b)
	}
	return c
}
