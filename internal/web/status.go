package web

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// How many threads, deliveries that could not be handled, and installations and repositories of the
// day, the status page shows.
const (
	maxLevels     = 20
	maxThreads    = 50
	maxDeliveries = 20
)

type statusData struct {
	frame
	Operator   bool
	Counts     []count
	Held       []held
	Breakers   []held
	Day        []held // what was used in 24 hours, on the server, by installation and by repository
	Threads    []threadLine
	Deliveries []thread.Delivery // those that could not be handled
	Learning   solver.LearningReport
	More       int // how many waiting threads are not listed
}

// count is one number at the top. Bad says that somebody should look.
type count struct {
	Name, Value, Note string
	Bad               bool
}

// held is one line on something that waits; Href may be empty.
type held struct {
	Name, Href, Text, Class string
}

type summary struct {
	Name, Subject, Heading string
	State, Class           string
	// Step says that a node works on the thread at this moment.
	Step    bool
	Rule    string
	Reasons []string
	Broken  string // why the thread cannot be shown
}

// summarise is the summary of a thread with the first reasons, or why it cannot be shown.
func summarise(row thread.ThreadRow, f checkrun.Facts, err error, now time.Time, most int) summary {
	s := summary{Name: text.Line(row.Thread.String(), maxName), Step: row.Running}
	if err != nil {
		s.State, s.Class, s.Broken = "unreadable", "failed", text.Line(err.Error(), maxReason)
		return s
	}
	s.Subject, s.State, s.Class = text.Line(f.Title, maxTitle), text.Spaced(f.State), class(f.State)
	s.Heading = text.Line(checkrun.Checks(f)[0].Title, 200) // the title of the check run says where the thread stands
	s.Rule = text.Spaced(text.Line(string(f.Rule), maxName))
	s.Reasons = shortened(f.Reasons.Write(func(t time.Time) string { return text.Instant(now, t) }), most)
	return s
}

type threadLine struct {
	summary
	Href           string
	Attempts       int
	Earlier        int // attempts of earlier runs
	Until, Changed time.Time
}

func (p *pages) status(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), pageTime)
	defer cancel()
	data, err := p.statusData(ctx, who(r))
	if err != nil {
		p.unavailable(w, r, err)
		return
	}
	p.render(w, p.statusPage, data)
}

// statusData is what the person may see: who is no operator sees the threads of their repositories, and nothing of
// the server.
func (p *pages) statusData(ctx context.Context, by Person) (statusData, error) {
	now := p.Now()
	data := statusData{frame: p.frame("Pawl", "./", now), Operator: by.Operator}
	rows, err := p.Store.Threads(ctx, maxThreads)
	if err != nil {
		return data, err
	}
	waits := 0
	for _, row := range rows {
		switch ok, err := p.mayRead(ctx, by, row.Thread.Repo()); {
		case err != nil:
			return data, err
		case !ok:
			continue
		}
		f, err := p.View(ctx, row.Thread)
		if ctx.Err() != nil {
			return data, err
		}
		t := listed(row, f, err, now)
		data.Threads = append(data.Threads, t)
		if !row.WakeAt.IsZero() {
			waits++
		}
		if !t.Until.IsZero() {
			data.Held = append(data.Held, held{Name: t.Name, Href: t.Href, Text: t.Heading, Class: "waiting"})
		}
	}
	if !by.Operator {
		return data, nil
	}
	err = p.serverData(ctx, &data, waits)
	return data, err
}

// serverData adds what only operators see.
func (p *pages) serverData(ctx context.Context, data *statusData, waits int) error {
	stats, err := p.Store.Stats(ctx)
	if err != nil {
		return err
	}
	breakers, err := p.Store.Breakers(ctx)
	if err != nil {
		return err
	}
	cooldowns, err := p.Store.Cooldowns(ctx, "", data.Now)
	if err != nil {
		return err
	}
	if data.Deliveries, err = p.Store.UnhandledDeliveries(ctx, maxDeliveries); err != nil {
		return err
	}
	if data.Learning, err = p.Learning(ctx); err != nil {
		return err
	}
	used, err := p.Store.UsedByRepo(ctx, data.Now.Add(-policy.Day))
	if err != nil {
		return err
	}
	data.Counts = counts(stats)
	for _, l := range p.Limits.Day(used, maxLevels) {
		h := held{Name: text.Line(l.Level, maxName), Text: l.String()}
		if why, _ := l.Full(); why != "" {
			h.Class = "failed"
		}
		data.Day = append(data.Day, h)
	}
	data.Breakers = p.breakers(breakers, data.Now)
	data.More = max(0, stats.Waiting-waits)
	data.Held = append(data.Held, cooling(cooldowns, data.Now)...)
	return nil
}

func counts(s store.Stats) []count {
	of := func(name string, n int, note string) count {
		return count{Name: name, Value: number(n), Note: note}
	}
	old := func(d time.Duration) string {
		if d < time.Second {
			return ""
		}
		return "oldest " + text.Span(d)
	}
	all := []count{of("running", s.Running, ""), of("queued", s.Queued, old(s.QueueAge)), of("waiting", s.Waiting, "")}
	for _, state := range deliveryStates() {
		c := of("deliveries "+text.Spaced(state), s.Deliveries[state], "")
		if state == thread.Received {
			c.Note = old(s.DeliveryAge)
		}
		c.Bad = (state == thread.Failed || state == thread.GivenUp) && s.Deliveries[state] > 0
		all = append(all, c)
	}
	return all
}

// deliveryStates are shown and counted also where there are none of them.
func deliveryStates() []thread.DeliveryState {
	return []thread.DeliveryState{thread.Received, thread.Handled, thread.Unparsable, thread.Failed, thread.GivenUp}
}

func (p *pages) breakers(all map[string]policy.Breaker, now time.Time) []held {
	var out []held
	for _, account := range slices.Sorted(maps.Keys(all)) {
		b := all[account]
		h := held{Name: text.Line(account, maxName), Class: "waiting"}
		state := "closed"
		reset, limited := b.Limited(now)
		_, open := b.Open(now, p.Limits.UsageLimit.MaxConsecutive)
		switch {
		case open:
			state, h.Class = "open", "failed"
		case limited:
			state = fmt.Sprintf("opens at %d", p.Limits.UsageLimit.MaxConsecutive)
		default:
			h.Class = "done"
		}
		h.Text = fmt.Sprintf("%d × %s in a row, %s", b.Consecutive, text.Spaced(text.Line(string(b.Kind), maxName)), state)
		if b.Consecutive == 0 {
			h.Text = "one thread was told " + text.Spaced(text.Line(string(b.Claim.Kind), maxName)) + ", which no other has confirmed"
		}
		switch {
		case !b.ResetsAt.IsZero() && !limited:
			h.Text += ", was reset at " + text.Instant(now, b.ResetsAt)
		case !reset.IsZero():
			h.Text += ", " + text.Left(now, reset)
		default:
			h.Text += ", reset unknown"
		}
		out = append(out, h)
	}
	return out
}

func cooling(all map[string][]thread.Cooldown, now time.Time) []held {
	var out []held
	for _, repo := range slices.Sorted(maps.Keys(all)) {
		for _, c := range all[repo] {
			h := held{Name: text.Line(c.Backend, maxName) + " on " + text.Line(repo, maxName), Class: "failed",
				Text: text.Line(checkrun.Rests(c, now), maxReason)}
			if t, err := thread.Parse(c.Thread); err == nil {
				h.Href = href(t)
			}
			out = append(out, h)
		}
	}
	return out
}

// listed is one thread in the list; the state beside the headline is not said again.
func listed(row thread.ThreadRow, f checkrun.Facts, err error, now time.Time) threadLine {
	t := threadLine{summary: summarise(row, f, err, now, 2), Href: href(row.Thread), Changed: row.UpdatedAt}
	if err != nil {
		return t
	}
	t.Heading = strings.TrimPrefix(strings.TrimPrefix(t.Heading, "Waiting: "), "Stopped: ")
	for _, a := range f.Attempts {
		if a.Run == f.Run {
			t.Attempts++
		} else {
			t.Earlier++
		}
	}
	if f.State == checkrun.Waiting {
		t.Until = f.Until
	}
	return t
}

// shortened are the first reasons, each on one line, and how many more there are.
func shortened(reasons []string, most int) []string {
	var out []string
	for i, r := range reasons {
		if i == most {
			return append(out, "and "+plural(len(reasons)-most, "more reason"))
		}
		out = append(out, text.Line(r, maxReason))
	}
	return out
}

func href(t thread.ID) string {
	return "threads/" + url.PathEscape(t.Owner) + "/" + url.PathEscape(t.Name) + "/" + strconv.Itoa(t.Number)
}
