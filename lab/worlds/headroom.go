package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// demand describes a month of work on accounts with usage windows. A unit is an account's five-hour quota.
type demand struct {
	name     string
	over     float64 // the demand, relative to the weekly quotas of all accounts
	tail     float64 // sigma of an attempt's log-normal use, whose median is typicalUse
	atOnce   int     // the maximum number of concurrent attempts
	byUsers  float64 // the share of requests that are users' commands
	accounts int
}

const (
	typicalUse = 0.04
	weekQuota  = 10.0 // in units. A week has 33 five-hour windows, but a subscription allows less than all of them.
	month      = 30 * 24 * time.Hour
	tick       = time.Minute
	retries    = 0.25 // the share of attempts whose verification fails
)

func demands() []demand {
	usual := demand{name: "usual", over: 1.3, tail: 0.8, atOnce: 6, byUsers: 0.5, accounts: 3}
	vary := func(name string, change func(*demand)) demand {
		d := usual
		d.name = name
		change(&d)
		return d
	}
	return []demand{
		usual,
		vary("attempts differ more", func(d *demand) { d.tail = 1.3 }),
		vary("2 attempts at once", func(d *demand) { d.atOnce = 2 }),
		vary("12 attempts at once", func(d *demand) { d.atOnce = 12 }),
		vary("20 % users' commands", func(d *demand) { d.byUsers = 0.2 }),
		vary("80 % users' commands", func(d *demand) { d.byUsers = 0.8 }),
		vary("less than the quota", func(d *demand) { d.over = 0.7 }),
		vary("one account", func(d *demand) { d.accounts = 1 }),
	}
}

// ways are the compared policies.
func ways() []string { return []string{"Pawl", "without headroom", "round robin"} }

// quota is the provider's side of a usage window. It begins with the first use after a reset.
type quota struct {
	name   string
	length time.Duration
	size   float64 // in units
	used   float64 // in units
	resets time.Time
	shares []float64 // the used share at each reset
}

func (q *quota) roll(now time.Time) {
	if q.resets.IsZero() || now.Before(q.resets) {
		return
	}
	q.shares = append(q.shares, q.used/q.size)
	q.used, q.resets = 0, time.Time{}
}

func (q *quota) spend(now time.Time, units float64) {
	if q.resets.IsZero() {
		q.resets = now.Add(q.length)
	}
	q.used += units
}

func (q *quota) reading(now time.Time) policy.Window {
	return policy.Window{Name: q.name, Used: q.used / q.size, ResetsAt: q.resets, SeenAt: now, Length: q.length}
}

// account is a login with its windows, Pawl's readings of the windows, and its breaker.
type account struct {
	name    string
	quotas  []*quota
	meters  []policy.Meter
	breaker policy.Breaker
	running int
}

// full returns the latest reset of the windows that have no room for these units; zero if all windows have room.
func (a *account) full(units float64) (reset time.Time) {
	for _, q := range a.quotas {
		if q.used+units > q.size && q.resets.After(reset) {
			reset = q.resets
		}
	}
	return reset
}

// job is a thread with one request.
type job struct {
	at       time.Time
	byUser   bool
	due      time.Time
	began    time.Time // the start of the first attempt
	done     bool      // whether the work is finished
	stopped  bool      // whether the policy gave up the request
	attempts []policy.Attempt
	run      *running
}

// running is an attempt in progress.
type running struct {
	on       *account
	left     time.Duration
	perTick  float64 // the used units per tick
	decision policy.Decision
	started  time.Time
	first    []policy.Window // the readings at its start, or the first readings after a reset
}

// simulation is a month with one policy.
type simulation struct {
	demand
	way      string
	limits   policy.Limits
	chance   *rand.Rand
	now      time.Time
	accounts []*account
	jobs     []*job // all jobs so far
	open     []*job // the jobs that are neither done nor stopped
	turn     int    // the next account of round robin
	attempts int
	cut      int
}

func newSimulation(d demand, way string, seed uint64) *simulation {
	s := &simulation{
		demand: d, way: way, limits: policy.Defaults(),
		chance: rand.New(rand.NewPCG(seed, 44)),
		now:    time.Date(2026, 6, 1, 0, 0, 0, 0, time.UTC),
	}
	s.limits.UsageLimit.AutoContinue = true
	for n := range d.accounts {
		a := &account{name: fmt.Sprintf("account-%d", n+1)}
		a.quotas = []*quota{
			{name: "5h", length: 5 * time.Hour, size: 1},
			{name: "7d", length: 7 * 24 * time.Hour, size: weekQuota},
		}
		a.meters = make([]policy.Meter, len(a.quotas))
		s.accounts = append(s.accounts, a)
	}
	return s
}

// play simulates a month.
func (s *simulation) play() {
	requests := s.requests()
	for end := s.now.Add(month); s.now.Before(end); s.now = s.now.Add(tick) {
		for len(requests) > 0 && !requests[0].at.After(s.now) {
			s.jobs, s.open = append(s.jobs, requests[0]), append(s.open, requests[0])
			requests = requests[1:]
		}
		for _, a := range s.accounts {
			for _, q := range a.quotas {
				q.roll(s.now)
			}
		}
		s.work()
		s.begin()
		s.open = slices.DeleteFunc(s.open, func(j *job) bool { return j.done || j.stopped })
	}
}

// requests draws the month's requests. There are three times as many requests by day as by night.
func (s *simulation) requests() (all []*job) {
	mean := typicalUse * math.Exp(s.tail*s.tail/2) / (1 - retries)
	n := s.over * weekQuota * float64(len(s.accounts)) * float64(month) / float64(7*24*time.Hour) / mean
	for range int(n) {
		day := time.Duration(s.chance.IntN(30)) * 24 * time.Hour
		hour := time.Duration(s.chance.Float64() * float64(12*time.Hour))
		if s.chance.Float64() < 0.75 {
			hour += 8 * time.Hour
		} else {
			hour = (hour + 20*time.Hour) % (24 * time.Hour)
		}
		all = append(all, &job{at: s.now.Add(day + hour), byUser: s.chance.Float64() < s.byUsers})
	}
	slices.SortFunc(all, func(a, b *job) int { return a.at.Compare(b.at) })
	return all
}

// work advances each running attempt by a tick. An attempt that reaches a limit is cut off.
func (s *simulation) work() {
	for _, j := range s.open {
		if j.run == nil {
			continue
		}
		r := j.run
		if reset := r.on.full(r.perTick); !reset.IsZero() {
			s.cut++
			s.end(j, policy.Receipt{
				Ending: policy.UsageLimit, Outcome: policy.WasUsageLimit,
				Limit: &policy.Limit{Kind: policy.UsageLimit, ResetsAt: reset, Source: policy.SourceStructured},
			})
			continue
		}
		for _, q := range r.on.quotas {
			q.spend(s.now, r.perTick)
		}
		s.read(r)
		if r.left -= tick; r.left <= 0 {
			s.end(j, s.result(j))
		}
	}
}

// read records a reading of the account's windows, as the gateway does with each answer.
func (s *simulation) read(r *running) {
	for i, q := range r.on.quotas {
		w := q.reading(s.now)
		r.on.meters[i] = r.on.meters[i].Seen(w)
		if _, same := w.Since(r.first[i]); !same {
			r.first[i] = w
		}
	}
}

func (s *simulation) result(j *job) policy.Receipt {
	r := policy.Receipt{
		Ending: policy.Completed, Outcome: policy.WorkUnverified,
		StartTree: fmt.Sprint("tree ", len(j.attempts)), EndTree: fmt.Sprint("tree ", len(j.attempts)+1),
	}
	if s.chance.Float64() < retries && len(j.attempts) < 2 {
		r.Outcome, r.Verify = policy.VerifyFailed, []policy.Verified{{Command: "make test", Exit: 1}}
	}
	return r
}

func (s *simulation) end(j *job, r policy.Receipt) {
	run := j.run
	run.on.running--
	for i, m := range run.on.meters {
		if share, same := m.Since(run.first[i]); same {
			run.on.meters[i] = m.Spent("claude", share)
		}
	}
	r.N = len(j.attempts) + 1
	run.on.breaker = run.on.breaker.After(r.Ending, r.Limit.Usable(), run.started, s.now)
	first := len(j.attempts) == 0
	j.attempts = append(j.attempts, policy.Attempt{
		Receipt: r, Decision: run.decision, Run: 1, Backend: "claude", Account: run.on.name, StartedAt: run.started, EndedAt: s.now,
		NewInput: first, Typed: first && j.byUser, ByUser: first && j.byUser,
	})
	j.run, j.due = nil, s.now
	j.done = r.Outcome == policy.WorkUnverified
}

// begin asks the policy about the due jobs, users' commands first, until the maximum number of attempts runs.
func (s *simulation) begin() {
	var due []*job
	busy := 0
	for _, j := range s.open {
		switch {
		case j.run != nil:
			busy++
		case !j.done && !j.due.After(s.now):
			due = append(due, j)
		}
	}
	slices.SortStableFunc(due, func(a, b *job) int { return cmp.Compare(b.urgent(), a.urgent()) })
	for _, j := range due {
		if busy == s.atOnce {
			return
		}
		if s.decide(j) {
			busy++
		}
	}
}

func (j *job) urgent() int {
	if j.byUser && len(j.attempts) == 0 {
		return 1
	}
	return 0
}

func (s *simulation) decide(j *job) (began bool) {
	d := policy.Next(s.facts(j))
	switch d.Action {
	case policy.DoAttempt:
		s.start(j, d)
		return true
	case policy.DoWait:
		j.due = d.Until
		if d.Until.IsZero() { // like solver.roomLook
			j.due = s.now.Add(5*time.Minute + time.Duration(s.chance.Int64N(int64(5*time.Minute))))
		}
	default:
		j.stopped = true
	}
	return false
}

func (s *simulation) facts(j *job) policy.Facts {
	f := policy.Facts{Now: s.now, Limits: s.limits, Run: 1, Attempts: j.attempts}
	if len(j.attempts) == 0 {
		f.Fresh = []policy.Request{{Seq: 1, At: j.at, By: "ada", Source: policy.FromLabel, Purpose: policy.ToChange}}
		if j.byUser {
			f.Fresh[0].Command, f.Fresh[0].Typed, f.Fresh[0].Source = "solve", true, policy.FromComment
		}
	}
	for i := range s.accounts {
		a := s.accounts[i]
		if s.way == "round robin" {
			a = s.accounts[(i+s.turn)%len(s.accounts)]
		}
		b := policy.Backend{Name: "claude", Account: a.name, Breaker: a.breaker, Running: a.running}
		if s.way == "Pawl" {
			b.Meters = a.meters
		}
		f.Backends = append(f.Backends, b)
	}
	return f
}

func (s *simulation) start(j *job, d policy.Decision) {
	s.attempts++
	s.turn++
	i := slices.IndexFunc(s.accounts, func(a *account) bool { return a.name == d.Account })
	on := s.accounts[i]
	on.running++
	length := time.Duration(math.Exp(s.chance.NormFloat64()*0.6) * float64(20*time.Minute))
	length = min(max(length, 5*time.Minute), time.Hour).Round(tick)
	use := typicalUse * math.Exp(s.chance.NormFloat64()*s.tail)
	j.run = &running{on: on, left: length, perTick: use * float64(tick) / float64(length), decision: d, started: s.now}
	for _, m := range on.meters {
		j.run.first = append(j.run.first, m.Window)
	}
	if j.began.IsZero() {
		j.began = s.now
	}
}

// outcome summarizes a simulation.
type outcome struct {
	attempts, cut     float64
	done, stopped     float64 // the number of requests
	week, fiveHours   float64 // the mean used share at the resets
	users, background []time.Duration
}

func (s *simulation) outcome() outcome {
	o := outcome{attempts: float64(s.attempts), cut: float64(s.cut)}
	var five, week []float64
	for _, a := range s.accounts {
		five, week = append(five, a.quotas[0].shares...), append(week, a.quotas[1].shares...)
	}
	o.fiveHours, o.week = mean(five), mean(week)
	for _, j := range s.jobs {
		switch {
		case j.done:
			o.done++
		case j.stopped:
			o.stopped++
		}
		began := j.began
		if began.IsZero() {
			began = s.now
		}
		if j.byUser {
			o.users = append(o.users, began.Sub(j.at))
		} else {
			o.background = append(o.background, began.Sub(j.at))
		}
	}
	return o
}

func mean(all []float64) (sum float64) {
	for _, x := range all {
		sum += x / float64(len(all))
	}
	return sum
}

// quantile returns the wait that a share of all waits does not exceed; 0 if there are no waits.
func quantile(waits []time.Duration, share float64) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[int(share*float64(len(waits)-1))]
}

// playMonths simulates a demand with each policy and seed.
func playMonths(d demand, seeds int) map[string][]outcome {
	played := map[string][]outcome{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, way := range ways() {
		for seed := range seeds {
			wg.Go(func() {
				s := newSimulation(d, way, uint64(seed))
				s.play()
				mu.Lock()
				defer mu.Unlock()
				played[way] = append(played[way], s.outcome())
			})
		}
	}
	wg.Wait()
	return played
}

func printHeadroom(out io.Writer, seeds int) {
	fmt.Fprintln(out, "| demand | policy | attempts | cut off by a limit | used share of a week's quota | of five hours' | requests done, given up | users' wait: median, 95 % | others' |")
	fmt.Fprintln(out, "|---|---|---|---|---|---|---|---|---|")
	for _, d := range demands() {
		played := playMonths(d, seeds)
		for _, way := range ways() {
			fmt.Fprintf(out, "| %s | %s | %s |\n", d.name, way, strings.Join(row(played[way]), " | "))
		}
	}
}

// row returns the means over the seeds. For the attempts that a limit cut off, it also has the range.
func row(all []outcome) []string {
	average := func(of func(outcome) float64) float64 {
		var values []float64
		for _, o := range all {
			values = append(values, of(o))
		}
		return mean(values)
	}
	var users, background []time.Duration
	var cuts []float64
	for _, o := range all {
		users, background, cuts = append(users, o.users...), append(background, o.background...), append(cuts, o.cut)
	}
	waits := func(all []time.Duration) string {
		return quantile(all, 0.5).Round(time.Minute).String() + ", " + quantile(all, 0.95).Round(time.Minute).String()
	}
	return []string{
		fmt.Sprintf("%.0f", average(func(o outcome) float64 { return o.attempts })),
		fmt.Sprintf("%.1f (%.0f–%.0f)", mean(cuts), slices.Min(cuts), slices.Max(cuts)),
		fmt.Sprintf("%.0f %%", 100*average(func(o outcome) float64 { return o.week })),
		fmt.Sprintf("%.0f %%", 100*average(func(o outcome) float64 { return o.fiveHours })),
		fmt.Sprintf("%.0f, %.0f", average(func(o outcome) float64 { return o.done }), average(func(o outcome) float64 { return o.stopped })),
		waits(users), waits(background),
	}
}
