package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/ground"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// How many threads, deliveries that could not be handled, and installations and repositories of the
// day, pawl status lists.
const (
	statusLevels     = 50
	statusThreads    = 100
	statusDeliveries = 100
)

func statusCommand() *cobra.Command {
	var file, thread string
	cmd := &cobra.Command{
		Use: "status --config FILE [OWNER/REPO#NUMBER]", Short: "Show threads, waits, cooldowns, breakers and what was learned of the backends", Args: cobra.MaximumNArgs(1),
		Long: "Show what the server's database says: threads with their state, waits, cooldowns and breakers, webhook\n" +
			"deliveries that could not be handled, the backends with what was learned of them, and how far the sources of grades can be believed.\nWith a thread, that one alone. The server may be running or not.",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withDatabase(cmd.Context(), file, store.OpenReadOnly, func(cfg config.Server, db *store.Store) error {
				if thread != "" {
					return exportThread(cmd.Context(), db, thread, cmd.OutOrStdout())
				}
				if len(args) > 0 {
					return threadReport(cmd, cfg, db, args[0])
				}
				r, err := readStatus(cmd.Context(), cfg, db, time.Now())
				if err != nil {
					return err
				}
				return printReport(cmd, r, r.print)
			})
		},
	}
	requiredFlag(cmd, &file, "config", "the server's configuration file")
	jsonFlag(cmd)
	cmd.Flags().StringVar(&thread, "export", "", "print the log of a thread (owner/repo#number), one event a line, as pawl replay reads it")
	return cmd
}

type statusReport struct {
	Threads    []threadStatus        `json:"threads"`
	Breakers   []breakerStatus       `json:"breakers"`
	Cooldowns  []cooldownStatus      `json:"cooldowns"`
	Backends   []backendStatus       `json:"backends"`
	Deliveries []deliveryStatus      `json:"deliveries"` // those that could not be handled
	Learning   solver.LearningReport `json:"learning"`
	Day        policy.Ledger         `json:"day"`     // what the attempts of the last 24 hours used on this server, and what they may use
	Levels     []policy.Ledger       `json:"levels"`  // Day, and the same by installation and by repository
	Layers     []layerStatus         `json:"layers"`  // of the servers that work in this data directory
	Images     []layerStatus         `json:"images"`  // likewise
	Servers    []inForce             `json:"servers"` // that run on this machine, likewise

	now time.Time
}

type threadStatus struct {
	Thread   string      `json:"thread"`
	Title    string      `json:"title"`
	Says     string      `json:"says"` // in a few words how it stands
	State    string      `json:"state"`
	Rule     policy.Rule `json:"rule"`
	Reasons  []string    `json:"reasons"`
	Run      int         `json:"run"`
	Attempts int         `json:"attempts"`
	Until    *time.Time  `json:"until"`
}

func statusOf(v checkrun.Facts) threadStatus {
	t := threadStatus{Thread: v.Thread, Title: text.Line(v.Title, shownLine), State: string(v.State), Rule: v.Rule, Says: checkrun.Headline(v), Reasons: v.Reasons.Texts(), Run: v.Run, Attempts: len(v.Attempts)}
	if v.State == checkrun.Waiting {
		t.Until = known(v.Until)
	}
	return t
}

type breakerStatus struct {
	Account string `json:"account"`
	policy.Breaker
	Open     bool       `json:"open"`
	ResetsAt *time.Time `json:"resets_at"`
}

type cooldownStatus struct {
	thread.Cooldown
	Repo string `json:"repo"`
}

// layerStatus is a layer of a repository, or an image, which is of none.
type layerStatus struct {
	Repo string    `json:"repo,omitempty"`
	Used time.Time `json:"used"`
	ground.Record
}

type deliveryStatus struct {
	thread.Delivery
	RetryAt *time.Time `json:"retry_at"` // null when it was given up
}

// known is a time as the reports have it, null where it is not known.
func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

type backendStatus struct {
	Name    string `json:"name"`
	Kind    string `json:"kind"`
	Account string `json:"account"`
	Model   string `json:"model,omitempty"`
	Effort  string `json:"effort,omitempty"`
}

func readStatus(ctx context.Context, cfg config.Server, db *store.Store, now time.Time) (statusReport, error) {
	r := statusReport{Threads: []threadStatus{}, Breakers: []breakerStatus{}, Cooldowns: []cooldownStatus{}, Backends: []backendStatus{}, Deliveries: []deliveryStatus{}, Layers: []layerStatus{}, Images: []layerStatus{}, now: now}
	s := &solver.Solver{Env: attempt.Env{Store: db, Config: cfg, Now: func() time.Time { return now }, Log: zerolog.Nop()}}
	rows, err := db.Threads(ctx, statusThreads)
	if err != nil {
		return r, err
	}
	for _, row := range rows {
		v, err := s.View(ctx, row.Thread)
		if err != nil {
			return r, err
		}
		r.Threads = append(r.Threads, statusOf(v))
	}
	breakers, err := db.Breakers(ctx)
	if err != nil {
		return r, err
	}
	for account, b := range breakers {
		_, open := b.Open(now, cfg.Policy.UsageLimit.MaxConsecutive)
		r.Breakers = append(r.Breakers, breakerStatus{account, b, open, known(b.ResetsAt)})
	}
	slices.SortFunc(r.Breakers, func(a, b breakerStatus) int { return cmp.Compare(a.Account, b.Account) })
	cooldowns, err := db.Cooldowns(ctx, "", now)
	if err != nil {
		return r, err
	}
	for repo, list := range cooldowns {
		for _, c := range list {
			r.Cooldowns = append(r.Cooldowns, cooldownStatus{c, repo})
		}
	}
	slices.SortFunc(r.Cooldowns, func(a, b cooldownStatus) int { return a.Until.Compare(b.Until) })
	for _, b := range cfg.Backends {
		r.Backends = append(r.Backends, backendStatus{Name: b.Name, Kind: b.Kind, Account: b.Account, Model: b.Model, Effort: b.Effort})
	}
	deliveries, err := db.UnhandledDeliveries(ctx, statusDeliveries)
	if err != nil {
		return r, err
	}
	for _, d := range deliveries {
		r.Deliveries = append(r.Deliveries, deliveryStatus{d, known(d.RetryAt)})
	}
	used, err := db.UsedByRepo(ctx, now.Add(-policy.Day))
	if err != nil {
		return r, err
	}
	for _, dir := range folders(cfg.DataDir) {
		layers, err := ground.Open(attempt.LayersIn(dir), nil, nil).List()
		if err != nil {
			return r, err
		}
		for _, l := range layers {
			r.Layers = append(r.Layers, layerStatus{l.Repo, l.Used, l.Record})
		}
		images, err := ground.Open(attempt.ImagesIn(dir), nil, nil).List()
		if err != nil {
			return r, err
		}
		for _, l := range images {
			r.Images = append(r.Images, layerStatus{"", l.Used, l.Record})
		}
	}
	r.Servers = serversIn(cfg.DataDir)
	r.Levels = cfg.Policy.Day(used, statusLevels)
	r.Day = r.Levels[0]
	r.Learning, err = s.LearningReport(ctx)
	return r, err
}

func (r statusReport) print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "THREAD\tATTEMPTS\tSTANDS\tTITLE\n")
	for _, v := range r.Threads {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", v.Thread, v.Attempts, v.Says, text.Short(v.Title, 60))
	}
	t.Flush()
	if len(r.Threads) == 0 {
		fmt.Fprintln(w, "No thread has had an attempt yet.")
	}
	for _, s := range r.Servers {
		said, do := s.say()
		fmt.Fprintln(w, text.Line(said+text.When(do != "", "; "+do), 2000))
	}
	for _, d := range r.Deliveries {
		when := "given up; pawl deliveries retry or dismiss decides"
		if d.RetryAt != nil {
			when = "next try: " + text.Left(r.now, *d.RetryAt)
		}
		fmt.Fprintf(w, "delivery %s (%s, %s), %s: %s\n", text.Line(d.GUID, 100), text.Line(d.Event, 100), text.Spaced(d.State), when, text.Line(d.Note, 300))
	}
	for _, c := range r.Cooldowns {
		fmt.Fprintf(w, "%s on %s: %s\n", c.Backend, c.Repo, checkrun.Rests(c.Cooldown, r.now))
	}
	for _, b := range r.Breakers {
		if b.Consecutive == 0 {
			fmt.Fprintf(w, "account %s: %s was told %s, which no other thread has confirmed\n", b.Account, b.Claim.Thread, b.Claim.Kind)
			continue
		}
		when := "when it resets is unknown"
		if b.ResetsAt != nil && b.ResetsAt.After(r.now) {
			when = text.Left(r.now, *b.ResetsAt)
		} else if b.ResetsAt != nil {
			when = "was reset at " + text.Instant(r.now, *b.ResetsAt)
		}
		state := "closed"
		if b.Open {
			state = "open"
		}
		fmt.Fprintf(w, "account %s: %d × %s in a row, breaker %s, %s\n", b.Account, b.Consecutive, b.Kind, state, when)
	}
	for _, l := range r.Levels {
		fmt.Fprintf(w, "in the last 24 hours on %s: %s\n", text.Line(l.Level, 300), l)
	}
	for _, l := range r.Layers {
		what := fmt.Sprintf("%d MiB, of %.10s", l.Bytes>>20, l.Commit)
		if l.Failed != nil {
			what = "setup failed: " + text.Line(l.Failed.Command, 100) + ": " + l.Failed.Result
		}
		fmt.Fprintf(w, "layer %s of %s: %s, used last at %s\n", l.Key, text.Line(l.Repo, 200), what, text.Instant(r.now, l.Used))
	}
	for _, l := range r.Images {
		fmt.Fprintf(w, "image %s: %d MiB, used last at %s\n", text.Line(l.Image, 300), l.Bytes>>20, text.Instant(r.now, l.Used))
	}
	for _, b := range r.Backends {
		fmt.Fprintf(w, "backend %s (%s) on account %s\n", b.Name, b.Kind, b.Account)
	}
	printLearning(w, r.Learning)
	printRecoveries(w, r.Learning)
}

// exportThread writes a thread's log as a trail: one event a line, oldest first. The number of a pull request
// that Pawl opened means the thread of its issue.
func exportThread(ctx context.Context, db *store.Store, name string, w io.Writer) error {
	t, err := thread.Parse(name)
	if err != nil {
		return err
	}
	if t, err = db.Resolve(ctx, t); err != nil {
		return err
	}
	events, err := db.Events(ctx, t, 0)
	if err != nil {
		return err
	}
	if len(events) == 0 {
		return fmt.Errorf("export %s: nothing is logged of it; pawl status lists the threads", t)
	}
	b := bufio.NewWriter(w)
	for _, e := range events {
		if err := json.NewEncoder(b).Encode(e); err != nil {
			return err
		}
	}
	return b.Flush()
}
