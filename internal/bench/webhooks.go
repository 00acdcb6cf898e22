package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

const (
	// webhookAim is the 99th percentile of the answers at webhookRate.
	webhookAim  = 25 * time.Millisecond
	webhookRate = 1000
	connections = 64
	// payloadSize is that of an ordinary issue_comment event, in bytes.
	payloadSize = 14 << 10
	// commented is over how many issues the comments are spread.
	commented = 1000
)

// measureWebhooks sends comments that are not for Pawl, signed and each with a
// GUID of its own, while the server stores and handles them.
func measureWebhooks(ctx context.Context, bin, dir string) (rows []row, notes []string, err error) {
	for _, m := range []struct {
		name string
		rate int
		time time.Duration
	}{{"rate", webhookRate, 10 * time.Second}, {"most", 0, 5 * time.Second}} {
		own := filepath.Join(dir, m.name)
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, nil, err
		}
		r, note, err := webhooks(ctx, bin, own, load{connections: connections, rate: m.rate, time: m.time})
		if err != nil {
			return nil, nil, err
		}
		notes = append(notes, note)
		p50, p99 := quantile(r.took, 0.5), quantile(r.took, 0.99)
		answers := fmt.Sprintf("p50 %s, p99 %s", ms(p50), ms(p99))
		if m.rate > 0 {
			rows = append(rows, row{fmt.Sprintf("webhook answers at %d deliveries/s, %d connections", m.rate, connections), answers,
				"p99 < " + ms(webhookAim), p99 < webhookAim})
			continue
		}
		rows = append(rows, row{fmt.Sprintf("webhook answers as fast as they come, %d connections", connections),
			fmt.Sprintf("%.0f/s, %s", r.perSecond(), answers), "", false})
	}
	return rows, notes, nil
}

// webhooks runs one load on a new server, after a short one to warm it up.
func webhooks(ctx context.Context, bin, dir string, l load) (res result, note string, err error) {
	r, err := newRig(ctx, bin, dir, "exit 1\n", "plain", "none", "log: {level: warn}\n")
	if err != nil {
		return res, "", err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	if _, err := r.start(ctx); err != nil {
		return res, "", err
	}
	if l.shots, err = r.comments(); err != nil {
		return res, "", err
	}
	l.addr = r.addr
	if _, err := (load{addr: r.addr, shots: l.shots, connections: 8, rate: 200, time: time.Second, prefix: 1}).run(ctx); err != nil {
		return res, "", err
	}
	db, err := store.OpenReadOnly(ctx, r.database(), store.Options{})
	if err != nil {
		return res, "", err
	}
	defer db.Close()
	if err := r.settled(ctx, db); err != nil {
		return res, "", err
	}
	sender, server := cpuTime(os.Getpid()), cpuTime(r.server.Process.Pid)
	if res, err = l.run(ctx); err != nil {
		return res, "", err
	}
	sender, server = cpuTime(os.Getpid())-sender, cpuTime(r.server.Process.Pid)-server
	state, err := db.Stats(ctx)
	if err != nil {
		return res, "", err
	}
	what := fmt.Sprintf("at %d/s", l.rate)
	if l.rate == 0 {
		what = "as fast as they come"
	}
	return res, fmt.Sprintf("Webhooks %s: %d answered in %.1f s, %d of them were not yet handled then; the server used %.0f %% of one core, the sender %.0f %%.",
		what, len(res.took), res.elapsed.Seconds(), state.Deliveries[solver.Received],
		100*server.Seconds()/res.elapsed.Seconds(), 100*sender.Seconds()/res.elapsed.Seconds()), nil
}

// comments are signed deliveries of comments on many issues, made from one that
// the fake GitHub sends and filled up with text to the usual size.
func (r *rig) comments() ([]shot, error) {
	n, err := r.world.OpenIssue(repo, reader, "The build is red", "It fails on my machine.")
	if err != nil {
		return nil, err
	}
	if _, err := r.world.Comment(repo, n, reader, "I see that, too."); err != nil {
		return nil, err
	}
	sent := r.world.Deliveries()
	payload := sent[len(sent)-1].Payload
	var shots []shot
	for i := range commented {
		var p struct {
			Issue, Comment map[string]any
		}
		var all map[string]any
		if err := errors.Join(json.Unmarshal(payload, &p), json.Unmarshal(payload, &all)); err != nil {
			return nil, err
		}
		if p.Issue == nil || p.Comment == nil {
			return nil, fmt.Errorf("the fake GitHub sent no comment: %.200s", payload)
		}
		p.Issue["number"], p.Comment["id"] = 100+i, 1_000_000+i
		p.Issue["body"] = words(max(0, payloadSize-len(payload)))
		all["issue"], all["comment"] = p.Issue, p.Comment
		body, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		shots = append(shots, newShot(r.addr, "issue_comment", body))
	}
	return shots, nil
}

// words is text of about n bytes that compresses about as well as prose.
func words(n int) string {
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", rand.N(1<<20))
	}
	return b.String()
}
