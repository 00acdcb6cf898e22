// Package status reports a server's database: threads, waits, cooldowns, breakers, backends and learning. The server
// need not be running.
package status

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/internal/ground"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// Limits of the day's installations and repositories, and of unhandled deliveries.
const (
	maxLevels     = 50
	maxDeliveries = 100
)

// Limits of threads: text shows the most recently changed, JSON all.
const (
	SomeThreads = 100
	AllThreads  = math.MaxInt32
)

// maxTitle limits a title in bytes.
const maxTitle = 200

// Report is the content of pawl status.
type Report struct {
	Threads    []Thread              `json:"threads"`
	LeftOut    int                   `json:"threads_left_out"`
	Accounts   []Account             `json:"accounts"`
	Breakers   []Breaker             `json:"breakers"`
	Cooldowns  []Cooldown            `json:"cooldowns"`
	Backends   []Backend             `json:"backends"`
	Deliveries []Delivery            `json:"deliveries"` // unhandled deliveries
	Learning   solver.LearningReport `json:"learning"`
	Day        policy.Ledger         `json:"day"`     // last 24 hours on this server, and the limits
	Levels     []policy.Ledger       `json:"levels"`  // Day, and the same by installation and repository
	Layers     []Layer               `json:"layers"`  // setup layers of servers in this data directory
	Images     []Layer               `json:"images"`  // unpacked images of servers in this data directory
	Servers    []server.InForce      `json:"servers"` // running here in this data directory
	Clocks     []cluster.WrongClock  `json:"wrong_clocks"`

	now time.Time
}

// Thread describes one thread.
type Thread struct {
	Thread   string      `json:"thread"`
	Title    string      `json:"title"`
	Headline string      `json:"says"`
	State    string      `json:"state"`
	Rule     policy.Rule `json:"rule"`
	Reasons  []string    `json:"reasons"`
	Run      int         `json:"run"`
	Attempts int         `json:"attempts"`
	Until    *time.Time  `json:"until"`
}

func ThreadOf(v checkrun.View) Thread {
	t := Thread{
		Thread:   v.Thread,
		Title:    render.Line(v.Title, maxTitle),
		Headline: checkrun.Headline(v),
		State:    string(v.State),
		Rule:     v.Rule,
		Reasons:  v.Reasons.Texts(),
		Run:      v.Run,
		Attempts: len(v.Attempts),
	}
	if v.State == checkrun.Waiting {
		t.Until = known(v.Until)
	}
	return t
}

func unreadable(t thread.ID, err error) Thread {
	why := render.Line(err.Error(), maxTitle)
	return Thread{
		Thread:   t.String(),
		Headline: "Unreadable: " + why,
		State:    "unreadable",
		Reasons:  []string{why},
	}
}

// Breaker describes an account's breaker.
type Breaker struct {
	Account string `json:"account"`
	policy.Breaker
	Open     bool       `json:"open"`
	ResetsAt *time.Time `json:"resets_at"`
}

// Account is an account with the usage windows that its provider reported.
type Account struct {
	Name    string   `json:"name"`
	Windows []Window `json:"windows"`
}

// Window is a usage window as its provider last reported it. After ResetsAt, its use is unknown.
type Window struct {
	Name     string     `json:"name"`
	Used     float64    `json:"used"` // share; 1 is full
	ResetsAt *time.Time `json:"resets_at"`
	SeenAt   time.Time  `json:"seen_at"`

	headline string
}

// Cooldown describes a backend's cooldown in a repository.
type Cooldown struct {
	thread.Cooldown
	Repo string `json:"repo"`
}

// Layer is a repository's setup layer, or an image.
type Layer struct {
	Repo string    `json:"repo,omitempty"`
	Used time.Time `json:"used"`
	ground.Record
}

type Delivery struct {
	thread.Delivery
	RetryAt *time.Time `json:"retry_at"` // null after giving up
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

type Backend struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Account string `json:"account"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
}

// Read reports on a server, including at most the given number of threads.
func Read(ctx context.Context, cfg config.Server, db *store.Store, now time.Time, threads int) (Report, error) {
	r := Report{
		Threads:    []Thread{},
		Accounts:   []Account{},
		Breakers:   []Breaker{},
		Cooldowns:  []Cooldown{},
		Backends:   []Backend{},
		Deliveries: []Delivery{},
		Layers:     []Layer{},
		Images:     []Layer{},
		Servers:    server.Running(cfg.DataDir),
		now:        now,
	}
	for _, b := range cfg.Backends {
		for _, account := range b.AccountNames() {
			r.Backends = append(r.Backends, Backend{
				Name:    b.Name,
				Kind:    b.Kind,
				Account: account,
				Model:   b.Model,
				Effort:  b.Effort,
			})
		}
	}
	s := reader(cfg, db, now)
	if err := r.readThreads(ctx, s, db, threads); err != nil {
		return r, err
	}
	if err := r.readTables(ctx, cfg, db); err != nil {
		return r, err
	}
	if err := r.readFolders(cfg.DataDir); err != nil {
		return r, err
	}
	learned, err := s.LearningReport(ctx)
	r.Learning = learned
	return r, err
}

func (r *Report) readThreads(ctx context.Context, s *solver.Solver, db *store.Store, most int) error {
	rows, err := db.Threads(ctx, AllThreads)
	if err != nil {
		return err
	}
	listed := rows[:min(most, len(rows))]
	r.LeftOut = len(rows) - len(listed)
	for _, row := range listed {
		v, err := s.View(ctx, row.Thread)
		if ctx.Err() != nil {
			return err
		}
		if err != nil {
			r.Threads = append(r.Threads, unreadable(row.Thread, err))
			continue
		}
		r.Threads = append(r.Threads, ThreadOf(v))
	}
	return nil
}

func (r *Report) readTables(ctx context.Context, cfg config.Server, db *store.Store) error {
	breakers, noBreakers := db.Breakers(ctx)
	meters, noMeters := db.Meters(ctx)
	cooldowns, noCooldowns := db.Cooldowns(ctx, "")
	deliveries, noDeliveries := db.UnhandledDeliveries(ctx, maxDeliveries)
	used, noUse := db.UsedByRepo(ctx, r.now.Add(-policy.Day))
	clocks, noClocks := cluster.WrongClocks(ctx, db)
	if err := cmp.Or(noBreakers, noMeters, noCooldowns, noDeliveries, noUse, noClocks); err != nil {
		return err
	}
	r.Clocks = clocks
	for _, account := range slices.Sorted(maps.Keys(breakers)) {
		b := breakers[account]
		_, open := b.Open(r.now, cfg.Policy.UsageLimit.MaxConsecutive)
		r.Breakers = append(r.Breakers, Breaker{account, b, open, known(b.ResetsAt)})
	}
	for _, name := range slices.Sorted(maps.Keys(meters)) {
		a := Account{Name: name}
		for _, m := range meters[name] {
			if !m.Known() {
				continue
			}
			text := checkrun.Window(m.Window, r.now)
			a.Windows = append(a.Windows, Window{m.Name, m.Used, known(m.ResetsAt), m.SeenAt, text})
		}
		if len(a.Windows) > 0 {
			r.Accounts = append(r.Accounts, a)
		}
	}
	for repo, list := range cooldowns {
		for _, c := range list {
			r.Cooldowns = append(r.Cooldowns, Cooldown{c, repo})
		}
	}
	slices.SortFunc(r.Cooldowns, func(a, b Cooldown) int { return a.Until.Compare(b.Until) })
	for _, d := range deliveries {
		r.Deliveries = append(r.Deliveries, Delivery{d, known(d.RetryAt)})
	}
	r.Levels = cfg.Policy.Day(used, maxLevels)
	r.Day = r.Levels[0]
	return nil
}

func (r *Report) readFolders(dataDir string) error {
	for _, dir := range server.Folders(dataDir) {
		layers, noLayers := ground.Open(attempt.LayersIn(dir), nil, nil).List()
		images, noImages := ground.Open(attempt.ImagesIn(dir), nil, nil).List()
		if err := cmp.Or(noLayers, noImages); err != nil {
			return err
		}
		for _, l := range layers {
			r.Layers = append(r.Layers, Layer{l.Repo, l.Used, l.Record})
		}
		for _, l := range images {
			r.Images = append(r.Images, Layer{"", l.Used, l.Record})
		}
	}
	return nil
}

// Print writes the report as text.
func (r Report) Print(w io.Writer) {
	r.printThreads(w)
	for _, s := range r.Servers {
		problem, do := s.Text()
		fmt.Fprintln(w, render.Line(problem+render.When(do != "", "; "+do), 2000))
	}
	for _, c := range r.Clocks {
		fmt.Fprintf(w, "server %s claims nothing: %s\n", render.Line(c.Server, 200), render.Line(c.Trouble, 500))
	}
	for _, d := range r.Deliveries {
		fmt.Fprintln(w, d.line(r.now))
	}
	for _, c := range r.Cooldowns {
		fmt.Fprintf(w, "%s on %s: %s\n", c.Backend, c.Repo, checkrun.Cooldown(c.Cooldown, r.now))
	}
	for _, b := range r.Breakers {
		fmt.Fprintln(w, b.line(r.now))
	}
	for _, a := range r.Accounts {
		for _, window := range a.Windows {
			fmt.Fprintf(w, "account %s: %s\n", render.Line(a.Name, 200), window.headline)
		}
	}
	for _, l := range r.Levels {
		fmt.Fprintf(w, "in the last 24 hours on %s: %s\n", render.Line(l.Level, 300), l)
	}
	for _, l := range r.Layers {
		fmt.Fprintln(w, l.layer(r.now))
	}
	for _, l := range r.Images {
		fmt.Fprintf(w, "image %s: %d MiB, last used at %s\n", render.Line(l.Image, 300), l.Bytes>>20, render.Instant(r.now, l.Used))
	}
	for _, b := range r.Backends {
		fmt.Fprintf(w, "backend %s (%s) on account %s\n", b.Name, b.Kind, b.Account)
	}
	if len(r.Learning.Weeks) > 0 {
		fmt.Fprintln(w, "What Pawl learned about the backends: pawl status --learning")
	}
}

func (r Report) printThreads(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "THREAD\tATTEMPTS\tSTANDS\tTITLE\n")
	for _, v := range r.Threads {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", v.Thread, v.Attempts, v.Headline, render.Short(v.Title, 60))
	}
	t.Flush()
	if len(r.Threads) == 0 {
		fmt.Fprintln(w, "No thread has had an attempt yet.")
	}
	if r.LeftOut > 0 {
		fmt.Fprintf(w, "and %s, which changed earlier: --json lists them\n", policy.Plural(r.LeftOut, "other thread"))
	}
}

func (d Delivery) line(now time.Time) string {
	when := "given up; pawl deliveries retry or dismiss decides"
	if d.RetryAt != nil {
		when = "next try: " + render.Left(now, *d.RetryAt)
	}
	return fmt.Sprintf(
		"delivery %s (%s, %s), %s: %s",
		render.Line(d.GUID, 100),
		render.Line(d.Event, 100),
		render.Spaced(d.State),
		when,
		render.Line(d.Note, 300),
	)
}

func (b Breaker) line(now time.Time) string {
	if b.Damage != "" {
		return fmt.Sprintf("account %s: %s", render.Line(b.Account, 200), render.Line(b.Damage, 500))
	}
	if b.Consecutive == 0 {
		return fmt.Sprintf("account %s: only %s has met %s", b.Account, b.Claim.Thread, b.Claim.Kind)
	}
	when, state := "when it resets is unknown", "closed"
	if b.ResetsAt != nil {
		when = render.Reset(now, *b.ResetsAt)
	}
	if b.Open {
		state = "open"
	}
	return fmt.Sprintf("account %s: %d × %s in a row, breaker %s, %s", b.Account, b.Consecutive, b.Kind, state, when)
}

func (l Layer) layer(now time.Time) string {
	what := fmt.Sprintf("%d MiB, of %.10s", l.Bytes>>20, l.Commit)
	if l.Failed != nil {
		what = "setup failed: " + render.Line(l.Failed.Command, 100) + ": " + l.Failed.Result
	}
	return fmt.Sprintf("layer %s of %s: %s, last used at %s", l.Key, render.Line(l.Repo, 200), what, render.Instant(now, l.Used))
}
