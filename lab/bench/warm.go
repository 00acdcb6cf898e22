package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/lab/rig"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	warmNodes = 3
	warmRepos = 10
	// Each repository gets warmRounds requests, one after another, so that about a third of the six slots is busy.
	warmRounds = 15
	warmPause  = 900 * time.Millisecond
	// The aims are from the issue that asked for node.prefer. The first attempt of each repository is cold: 7 % of these.
	warmAim = 0.9
	lateAim = 5 * time.Second
)

// briefAgent works for a second, as if it built from caches.
const briefAgent = "cat > /dev/null\nsleep 1\necho line >> a.txt\n"

// measureWarm counts the attempts that begin on a node where the repository had an attempt before. It also measures the
// time from the command to the attempt. It does both with and without node.prefer.
func measureWarm(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	pg, why, err := startPostgres(ctx)
	if err != nil {
		return nil, nil, err
	}
	if why != "" {
		return nil, []string{"Warm starts were not measured: " + why + "."}, nil
	}
	defer func() { err = errors.Join(err, pg.stop()) }()
	for _, prefer := range []string{"3s", "0s"} {
		own, err := os.MkdirTemp(dir, "warm")
		if err != nil {
			return nil, nil, err
		}
		share, waits, err := warmStarts(ctx, bin, own, pg, prefer)
		if err != nil {
			return nil, nil, err
		}
		what := "node.prefer " + prefer + ", 3 nodes, 10 repositories: "
		shares := row{what: what + "attempts with caches", measured: fmt.Sprintf("%.0f %% of %d", 100*share, len(waits))}
		times := row{what: what + "from command to attempt", measured: fmt.Sprintf("%s, max %s", spread(waits), ms(quantile(waits, 1)))}
		if prefer != "0s" {
			shares.aim, shares.met = "> 90 %", share > warmAim
			times.aim, times.met = "max < "+lateAim.String(), quantile(waits, 1) < lateAim
		}
		rows = append(rows, shares, times)
	}
	return rows, nil, nil
}

func warmStarts(ctx context.Context, bin, dir string, pg *postgres, prefer string) (share float64, waits []time.Duration, err error) {
	r, err := newBench(ctx, bin, dir, briefAgent, "plain", "none", "log: {level: warn}\nworkers: 2\nnode: {prefer: "+prefer+"}\n")
	if err != nil {
		return 0, nil, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	if err := r.onPostgres(ctx, pg, "warm_"+prefer); err != nil {
		return 0, nil, err
	}
	repos, permissions := []string{}, map[string]string{}
	for i := range warmRepos {
		// Each repository has its own owner, because GitHub limits the writes to one owner's repositories.
		name := fmt.Sprintf("owner-%d/part", i)
		if err := r.World.AddRepo(ctx, name, map[string]string{"a.txt": "one\n"}); err != nil {
			return 0, nil, err
		}
		repos, permissions[name] = append(repos, name), "write"
	}
	const maintainer = "grace"
	if err := r.World.AddUser(maintainer, 1003, permissions); err != nil {
		return 0, nil, err
	}
	var nodes []*bench
	defer func() {
		for _, n := range nodes {
			err = errors.Join(err, n.Stop())
		}
	}()
	for i := range warmNodes {
		n := r.node()
		if n.Addr, err = rig.FreeAddress(); err != nil {
			return 0, nil, err
		}
		if err := n.nodeConfig(i, r.Addr); err != nil {
			return 0, nil, err
		}
		if _, err := n.Start(ctx); err != nil {
			return 0, nil, err
		}
		nodes = append(nodes, n)
	}
	requested := map[thread.ID]time.Time{}
	for range warmRounds {
		for _, i := range rand.Perm(warmRepos) {
			r.World.SetWebhookURL(nodes[rand.N(warmNodes)].URL("/api/github/hook"))
			n, err := r.World.OpenIssue(repos[i], maintainer, "A line", "Please add a line to a.txt.")
			if err != nil {
				return 0, nil, err
			}
			owner, name, _ := strings.Cut(repos[i], "/")
			requested[thread.ID{Owner: owner, Name: name, Number: n}] = time.Now()
			if _, err := r.World.Comment(repos[i], n, maintainer, "/pawl solve"); err != nil {
				return 0, nil, err
			}
			if err := r.World.WaitDelivered(ctx); err != nil {
				return 0, nil, err
			}
			time.Sleep(warmPause)
		}
	}
	err = r.withStore(ctx, func(db *store.Store) error {
		share, waits, err = judgeWarm(ctx, nodes[0], db, requested)
		return err
	})
	return share, waits, err
}

// judgeWarm waits for the first attempt of each thread. share is the share of attempts in a folder where an earlier
// attempt of the repository began. waits are the times from command to attempt.
func judgeWarm(ctx context.Context, r *bench, db *store.Store, requested map[thread.ID]time.Time) (share float64, waits []time.Duration, err error) {
	earliest := map[[2]string]time.Time{} // by repository and folder
	var began []thread.Attempt
	var repos []string
	for t, at := range requested {
		if _, err := r.begun(ctx, t, 1); err != nil {
			return 0, nil, err
		}
		events, err := db.Events(ctx, t, 0)
		if err != nil {
			return 0, nil, err
		}
		s, err := thread.Fold(events)
		if err != nil {
			return 0, nil, err
		}
		a := s.Attempts[0]
		began, repos, waits = append(began, a), append(repos, t.Repo()), append(waits, a.At.Sub(at))
		if first, known := earliest[[2]string{t.Repo(), a.Place}]; !known || a.At.Before(first) {
			earliest[[2]string{t.Repo(), a.Place}] = a.At
		}
	}
	warm := 0
	for i, a := range began {
		if earliest[[2]string{repos[i], a.Place}].Before(a.At) {
			warm++
		}
	}
	return float64(warm) / float64(len(began)), waits, nil
}
