package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/solver"
)

// Detail is a check that does not affect readiness. Run must return soon after its context ends: until then, later
// requests report that the check hangs.
type Detail struct {
	Name string
	Run  func(ctx context.Context) (ok bool, text string)
}

// readyTime limits a request's checks. Kubernetes allows 1 s by default, load balancers 5 s.
const readyTime = 2 * time.Second

// maxDetail limits details in characters.
const maxDetail = 300

type result struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// probe runs one check at a time. A caller stops waiting when its context ends; a hanging check is not started again.
type probe struct {
	name string
	run  func(ctx context.Context) []result
	busy chan struct{}
}

func newProbe(name string, run func(ctx context.Context) []result) probe {
	return probe{name: name, run: run, busy: make(chan struct{}, 1)}
}

func (q probe) answer(ctx context.Context) []result {
	select {
	case q.busy <- struct{}{}:
	case <-ctx.Done():
		return []result{{Name: q.name, Detail: "the previous check has not returned yet"}}
	}
	answered := make(chan []result, 1)
	go func() {
		defer func() { <-q.busy }()
		answered <- q.run(ctx)
	}()
	select {
	case r := <-answered:
		return r
	case <-ctx.Done():
		return []result{{Name: q.name, Detail: fmt.Sprintf("no answer: %v", context.Cause(ctx))}}
	}
}

// parts holds the checks; the first decides readiness.
type parts []probe

// newParts puts the database first, since a server that can store webhooks is ready. Details do not count: an unready
// server would lose webhooks.
func newParts(o Options) parts {
	stores := func(ctx context.Context) (bool, string) {
		if err := o.Store.Ping(ctx); err != nil {
			return false, err.Error()
		}
		return true, ""
	}
	var all parts
	for _, d := range append([]Detail{{"database", stores}}, o.Details...) {
		all = append(all, newProbe(d.Name, func(ctx context.Context) []result {
			ok, detail := d.Run(ctx)
			return []result{{Name: d.Name, OK: ok, Detail: render.Line(detail, maxDetail)}}
		}))
	}
	return all
}

func (p parts) answers(ctx context.Context) [][]result {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	out := make([][]result, len(p))
	var asked sync.WaitGroup
	for i, q := range p {
		asked.Go(func() { out[i] = q.answer(ctx) })
	}
	asked.Wait()
	return out
}

// readiness answers 503 if the first check fails. A request that knows refuses gets only that check, without its detail.
func readiness(p parts, learned func(context.Context) (solver.LearningReport, error), knows func(*http.Request) bool) http.Handler {
	decides := p[:1]
	p = append(p, newProbe("signals", func(ctx context.Context) []result { return signals(ctx, learned) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, trusted := p, knows(r)
		if !trusted {
			asked = decides
		}
		all := asked.answers(r.Context())
		answer := struct {
			Ready   bool     `json:"ready"`
			Checks  []result `json:"checks"`
			Details []result `json:"details"`
		}{all[0][0].OK, all[0], []result{}}
		if !trusted {
			answer.Checks[0].Detail = ""
		}
		for _, d := range all[1:] {
			answer.Details = append(answer.Details, d...)
		}
		guard(w.Header())
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		if !answer.Ready {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(answer)
	})
}

func signals(ctx context.Context, learned func(context.Context) (solver.LearningReport, error)) []result {
	known, err := learned(ctx)
	if err != nil {
		return []result{{Name: "signals", Detail: render.Line(err.Error(), maxDetail)}}
	}
	var out []result
	for _, h := range known.Sources {
		if h.Degraded {
			out = append(out, result{Name: "signal " + string(h.Source), Detail: render.Line("degraded: "+h.Reason, maxDetail)})
		}
	}
	return out
}
