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

// Detail is something that people want to know of a server and that does not
// decide whether it is ready. Run should return soon after its context has ended.
type Detail struct {
	Name string
	Run  func(ctx context.Context) (ok bool, text string)
}

// readyTime bounds all questions of one request: Kubernetes asks with 1 s by default, load balancers with 5 s.
const readyTime = 2 * time.Second

// maxDetail is how much of an answer is shown, in characters.
const maxDetail = 300

type result struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// question is asked by one request at a time. A disk that hangs holds whoever writes to it, so nobody waits for
// the answer longer than the context, and nobody asks again before it has come.
type question struct {
	name string
	run  func(ctx context.Context) []result
	busy chan struct{}
}

func ask(name string, run func(ctx context.Context) []result) question {
	return question{name: name, run: run, busy: make(chan struct{}, 1)}
}

// answer is what the question comes to before ctx ends.
func (q question) answer(ctx context.Context) []result {
	select {
	case q.busy <- struct{}{}:
	case <-ctx.Done():
		return []result{{Name: q.name, Detail: "a question of before is not answered yet"}}
	}
	come := make(chan []result, 1)
	go func() {
		defer func() { <-q.busy }()
		come <- q.run(ctx)
	}()
	select {
	case r := <-come:
		return r
	case <-ctx.Done():
		return []result{{Name: q.name, Detail: fmt.Sprintf("no answer: %v", context.Cause(ctx))}}
	}
}

// parts are the questions that say how a server is. The first one decides.
type parts []question

// newParts asks first whether a webhook can be stored, which alone makes a server ready: whoever takes one out
// of service takes its webhooks from it.
func newParts(o Options) parts {
	stores := func(ctx context.Context) (bool, string) {
		if err := o.Store.Ping(ctx); err != nil {
			return false, err.Error()
		}
		return true, ""
	}
	var all parts
	for _, d := range append([]Detail{{"database", stores}}, o.Details...) {
		all = append(all, ask(d.Name, func(ctx context.Context) []result {
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

// readiness asks everything anew, and answers 503 when the first part fails; details change nothing. Who does not
// know the server (knows) is told no more than which parts decide and whether they are well.
func readiness(p parts, learned func(context.Context) (solver.LearningReport, error), knows func(*http.Request) bool) http.Handler {
	decides := p[:1]
	p = append(p, ask("signals", func(ctx context.Context) []result { return signals(ctx, learned) }))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked, told := p, knows(r)
		if !told {
			asked = decides
		}
		all := asked.answers(r.Context())
		answer := struct {
			Ready   bool     `json:"ready"`
			Checks  []result `json:"checks"`
			Details []result `json:"details"`
		}{all[0][0].OK, all[0], []result{}}
		if !told {
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
		// Whoever asked has gone away if this does not arrive.
		_ = e.Encode(answer)
	})
}

// signals are the sources of grades that nothing is learned from, which harms no webhook and no attempt.
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
