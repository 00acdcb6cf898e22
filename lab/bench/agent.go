package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	// agentAim limits the time from the webhook's answer to the agent's first act, without fetch and checkout.
	agentAim = 300 * time.Millisecond
	// Each server solves one issue to fill the cache, then agentRuns issues. More issues would run into the client's limit
	// of 80 writes per minute.
	agentServers = 2
	agentRuns    = 10
	// commandsAim limits the time from the webhook's answer to the agent's start, with four commands at once.
	commandsAim    = time.Second
	commandsRounds = 2
)

const stampAgent = "date +%s%N\ncat > /dev/null\n"

// measureAgent comments on issues one after the other, and measures the time from the webhook's answer to the agent's
// start.
func measureAgent(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	modes, notes := sandboxModes(ctx)
	for _, mode := range modes {
		own := filepath.Join(dir, mode)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		ways, err := agentStarts(ctx, bin, own, mode)
		if err != nil {
			return nil, nil, err
		}
		var whole, without []time.Duration
		for _, w := range ways {
			whole, without = append(whole, w.whole()), append(without, w.whole()-w.part[fetched]-w.part[checkedOut])
		}
		rows = append(rows,
			row{"comment stored to agent started, sandbox " + mode, spread(whole), "", false},
			row{"the same without fetch and checkout", spread(without), "median < " + ms(agentAim), quantile(without, 0.5) < agentAim})
		notes = append(notes, "\nThe parts of that time, sandbox "+mode+":")
		for p, name := range partNames() {
			var all []time.Duration
			for _, w := range ways {
				all = append(all, w.part[p])
			}
			notes = append(notes, fmt.Sprintf("  %-54s %s", name, spread(all)))
		}
	}
	own := filepath.Join(dir, "commands")
	if err := os.Mkdir(own, 0o700); err != nil {
		return nil, nil, err
	}
	waited, err := commandsAtOnce(ctx, bin, own)
	if err != nil {
		return nil, nil, err
	}
	return append(rows, row{"four commands at once, GitHub answers in 100 ms: comment stored to agent started", spread(waited),
		"median ≤ " + ms(commandsAim), quantile(waited, 0.5) <= commandsAim}), notes, nil
}

// commandsAtOnce posts four commands at once, commandsRounds times, while GitHub answers slowly. More commands per
// minute would exceed GitHub's write limit.
func commandsAtOnce(ctx context.Context, bin, dir string) (waited []time.Duration, err error) {
	r, err := newBench(ctx, bin, dir, stampAgent, "plain", "none", "workers: 4\n")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Start(ctx); err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	if _, _, err := r.Solve(ctx, db); err != nil { // fills the cache
		return nil, err
	}
	for depth := range 7 {
		r.World.Inject(fakegithub.Fault{Route: "* /repos" + strings.Repeat("/*", depth+2), Times: -1, Latency: 100 * time.Millisecond})
	}
	for range commandsRounds {
		var issues []thread.ID
		for range 4 {
			n, err := r.World.OpenIssue(repo, writer, "A second line", "Please add a second line to a.txt.")
			if err != nil {
				return nil, err
			}
			issues = append(issues, thread.ID{Owner: "acme", Name: "widgets", Number: n})
		}
		if err := r.Settled(ctx, db); err != nil {
			return nil, err
		}
		for _, t := range issues {
			if _, err := r.World.Comment(repo, t.Number, writer, "/pawl solve"); err != nil {
				return nil, err
			}
		}
		for _, t := range issues {
			log, err := r.Solved(ctx, db, t)
			if err != nil {
				return nil, err
			}
			w, err := follow(log, r.World.Deliveries())
			if err != nil {
				return nil, fmt.Errorf("%s: %w", t, err)
			}
			waited = append(waited, w.whole())
		}
	}
	return waited, nil
}

// The measured parts in order.
const (
	judged  = iota
	fetched // also the queue and the lease
	checkedOut
	started
	parts
)

func partNames() [parts]string {
	return [parts]string{
		"delivery handled: permission looked up, judged", "thread claimed, token, git fetch, configuration read", "checkout", "sandbox and agent started",
	}
}

// way holds the durations of the parts between the comment and the agent's start.
type way struct{ part [parts]time.Duration }

func (w way) whole() (sum time.Duration) {
	for _, p := range w.part {
		sum += p
	}
	return sum
}

func agentStarts(ctx context.Context, bin, dir, mode string) (ways []way, err error) {
	r, err := newBench(ctx, bin, dir, stampAgent, "plain", mode, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	for range agentServers {
		more, err := r.agentStarts(ctx)
		if err := errors.Join(err, r.Stop()); err != nil {
			return nil, err
		}
		ways = append(ways, more...)
	}
	return ways, nil
}

func (r *bench) agentStarts(ctx context.Context) (ways []way, err error) {
	if _, err := r.Start(ctx); err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	for n := range agentRuns + 1 {
		t, log, err := r.Solve(ctx, db)
		if err != nil {
			return nil, err
		}
		w, err := follow(log, r.World.Deliveries())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t, err)
		}
		if n > 0 {
			ways = append(ways, w)
		}
	}
	return ways, nil
}

// follow reads the parts from the log's times, the fake GitHub's record of the answer, and the transcript: its file
// is created after the checkout, and the agent writes its first line.
func follow(log []thread.Event, deliveries []fakegithub.Delivery) (w way, err error) {
	var stored, judged, begun time.Time
	var receipt policy.Receipt
	for _, e := range log {
		switch {
		case e.Kind == thread.KindFeedback:
			var f thread.Feedback
			if err := json.Unmarshal(e.Data, &f); err != nil {
				return w, err
			}
			judged, stored = e.At, answered(deliveries, f.Delivery)
		case e.Kind == thread.KindAttemptStarted:
			begun = e.At
		case e.Kind == thread.KindAttemptEnded:
			if err := json.Unmarshal(e.Data, &receipt); err != nil {
				return w, err
			}
		}
	}
	if stored.IsZero() || begun.IsZero() || receipt.Transcript == "" {
		return w, errors.New("the log lacks an answered webhook or an attempt")
	}
	ready, err := born(receipt.Transcript)
	if err != nil {
		return w, err
	}
	first, err := stamp(receipt.Transcript)
	if err != nil {
		return w, err
	}
	at := [parts + 1]time.Time{stored, judged, begun, ready, first}
	for p := range parts {
		w.part[p] = at[p+1].Sub(at[p])
	}
	return w, nil
}

// answered returns when a delivery was answered.
func answered(deliveries []fakegithub.Delivery, guid string) time.Time {
	for _, d := range deliveries {
		if d.GUID == guid {
			return d.At.Add(d.Duration)
		}
	}
	return time.Time{}
}

// born returns a file's creation time.
func born(path string) (time.Time, error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, 0, unix.STATX_BTIME, &s); err != nil {
		return time.Time{}, fmt.Errorf("statx %s: %w", path, err)
	}
	if s.Mask&unix.STATX_BTIME == 0 {
		return time.Time{}, fmt.Errorf("the file system of %s does not record when a file was created; set TMPDIR to another file system", path)
	}
	return time.Unix(s.Btime.Sec, int64(s.Btime.Nsec)), nil
}

// stamp parses the agent's time.
func stamp(transcript string) (time.Time, error) {
	text, err := os.ReadFile(transcript)
	if err != nil {
		return time.Time{}, err
	}
	line, _, _ := bytes.Cut(text, []byte("\n"))
	n, err := strconv.ParseInt(string(line), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("the agent's time: %w", err)
	}
	return time.Unix(0, n), nil
}

// callsAim limits the requests to GitHub's API for one solved issue. An installation has 5,000 requests an hour.
const callsAim = 15

// measureCalls solves two issues with one attempt each. The first includes requests whose answers are cached.
func measureCalls(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	r, err := newBench(ctx, bin, dir, "cat > /dev/null\necho two >> a.txt\necho 'a.txt has a second line now'\n", "plain", "none", "")
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if _, err := r.Start(ctx); err != nil {
		return nil, nil, err
	}
	db, err := store.Open(ctx, r.Database(), store.Options{Access: store.Reading})
	if err != nil {
		return nil, nil, err
	}
	defer db.Close()
	for _, which := range []string{"first of a new server", "next"} {
		r.World.ResetCalls()
		pulls := len(r.World.Pulls(repo))
		t, log, err := r.Solve(ctx, db)
		if err != nil {
			return nil, nil, err
		}
		state, err := thread.Fold(log)
		if err != nil {
			return nil, nil, err
		}
		if len(state.Attempts) != 1 || len(r.World.Pulls(repo)) != pulls+1 {
			return nil, nil, fmt.Errorf("%s was not solved in one attempt: %+v", t, state.Decision)
		}
		total, list := restCalls(r.World.Calls())
		rows = append(rows, row{fmt.Sprintf("GitHub API calls for one solved issue, %s", which), fmt.Sprint(total), fmt.Sprintf("≤ %d", callsAim), total <= callsAim})
		notes = append(notes, fmt.Sprintf("\nAPI calls for one solved issue, %s:", which))
		notes = append(notes, list...)
	}
	return rows, notes, nil
}

// restCalls counts the requests except git's, and lists them by route.
func restCalls(calls map[string]int) (total int, list []string) {
	for _, route := range slices.Sorted(maps.Keys(calls)) {
		if strings.Contains(route, ".git/") {
			continue
		}
		total += calls[route]
		list = append(list, fmt.Sprintf("  %2d  %s", calls[route], route))
	}
	return total, list
}
