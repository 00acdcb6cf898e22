package web

import "net/http"

// hookAnswers are what the webhook endpoint answers; each is counted from 0 on, so
// that the first of a kind is an increase.
func hookAnswers() []int {
	return []int{
		http.StatusOK, http.StatusBadRequest, http.StatusUnauthorized, http.StatusMethodNotAllowed, http.StatusRequestTimeout,
		http.StatusRequestEntityTooLarge, http.StatusServiceUnavailable,
	}
}

// counting counts the answers of the webhook endpoint by their status.
func counting(c *Counters, hook http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answered{ResponseWriter: w, status: http.StatusOK}
		hook.ServeHTTP(a, r)
		c.Webhook(a.status)
	})
}

// answered remembers the status of an answer; net/http answers 200 where nobody
// says anything else.
type answered struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *answered) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *answered) Unwrap() http.ResponseWriter { return a.ResponseWriter }
