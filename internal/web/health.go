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
// when one of them fails.
func readiness(store Store, checks []Check) http.Handler {
	all := append([]Check{{Name: "database", Run: store.Ping}}, checks...)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), readyTime)
		defer cancel()
		answer := struct {
			Ready  bool     `json:"ready"`
			Checks []result `json:"checks"`
		}{true, make([]result, len(all))}
		var asked sync.WaitGroup
		for i, c := range all {
			asked.Go(func() { answer.Checks[i] = c.ask(ctx) })
		}
		asked.Wait()
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

func (c Check) ask(ctx context.Context) result {
	if err := c.Run(ctx); err != nil {
		return result{Name: c.Name, Detail: line(err.Error(), maxDetail)}
	}
	return result{Name: c.Name, OK: true}
}
