package main

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlbot/pawl/solver"
)

// hook opens a span for each webhook that was taken. Refused requests get none:
// anybody can send those.
func (t *tracing) hook(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		answer := &tracedAnswer{ResponseWriter: w}
		next.ServeHTTP(answer, r)
		if answer.status/100 != 2 {
			return
		}
		guid := r.Header.Get("X-GitHub-Delivery")
		ctx := context.WithValue(r.Context(), guidKey{}, guid)
		_, s := t.tracer.Start(ctx, "webhook", trace.WithNewRoot(), trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindServer),
			trace.WithAttributes(attribute.String(solver.TraceDelivery, guid), attribute.String(solver.TraceEvent, r.Header.Get("X-GitHub-Event")),
				attribute.Int("http.response.status_code", answer.status)))
		s.End()
	})
}

// tracedAnswer remembers the status of an answer.
type tracedAnswer struct {
	http.ResponseWriter
	status int
}

// WriteHeader implements http.ResponseWriter.
func (a *tracedAnswer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
	a.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (a *tracedAnswer) Write(b []byte) (int, error) {
	if a.status == 0 {
		a.status = http.StatusOK
	}
	return a.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *tracedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// calmExporter keeps the failures of a collector from being more than a line in
// the log now and then.
type calmExporter struct {
	sdktrace.SpanExporter
	log zerolog.Logger

	mu   sync.Mutex
	told time.Time // of the last complaint
	lost int       // spans since then
}

// ExportSpans implements sdktrace.SpanExporter. It never fails.
func (c *calmExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := c.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lost += len(spans)
	if time.Since(c.told) >= exportLogTime {
		text := err.Error()
		c.log.Warn().Str("error", text[:min(len(text), maxAttribute)]).Int("spans", c.lost).Msg("spans were not taken by tracing.endpoint and are lost")
		c.told, c.lost = time.Now(), 0
	}
	return nil
}
