package web

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"
)

// Check is one thing that must hold for the server to be ready. Run must return
// soon after its context has ended; its error says what is wrong.
type Check struct {
	Name string
	Run  func(ctx context.Context) error
}

// readyTime bounds all checks of one request. Kubernetes asks with 1 s by
// default, most load balancers with 5 s.
const readyTime = 2 * time.Second

// maxDetail is how much of a check's error is shown, in characters.
const maxDetail = 300

// healthy answers as long as the process can answer at all.
func healthy(w http.ResponseWriter, _ *http.Request) {
	plain(w, http.StatusOK, "ok")
}

// result is what one check came to.
type result struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
}

// readiness asks the database and every check, each time anew, and answers 503
// when one of them fails. Details are told besides and change nothing.
func readiness(o Options, learned *standing) http.Handler {
	all := append([]Check{{Name: "database", Run: o.Store.Ping}}, o.Checks...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		answer := struct {
			Ready   bool     `json:"ready"`
			Checks  []result `json:"checks"`
			Details []result `json:"details"`
		}{true, make([]result, len(all)), []result{}}
		var asked sync.WaitGroup
		for i, c := range all {
			asked.Go(func() { answer.Checks[i] = c.ask(ctx) })
		}
		asked.Wait()
		for _, d := range o.Details {
			ok, text := d.Run()
			answer.Details = append(answer.Details, result{Name: d.Name, OK: ok, Detail: line(text, maxDetail)})
		}
		answer.Details = append(answer.Details, signals(ctx, learned)...)
		for _, c := range answer.Checks {
			answer.Ready = answer.Ready && c.OK
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

// signals are the sources of grades that nothing is learned from at present. That
// harms no webhook and no attempt.
func signals(ctx context.Context, learned *standing) []result {
	known, err := learned.get(ctx)
	if err != nil {
		return []result{{Name: "signals", Detail: line(err.Error(), maxDetail)}}
	}
	var out []result
	for _, h := range known.Sources {
		if h.Degraded {
			out = append(out, result{Name: "signal " + string(h.Source), Detail: line("degraded: "+h.Reason, maxDetail)})
		}
	}
	return out
}

func (c Check) ask(ctx context.Context) result {
	if err := c.Run(ctx); err != nil {
		return result{Name: c.Name, Detail: line(err.Error(), maxDetail)}
	}
	return result{Name: c.Name, OK: true}
}
