package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/rs/zerolog"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/solver"
)

// Bounds of what traces may cost. A collector that is slow or away costs the
// spans that do not fit into the queue, about 2 MiB, and nothing else.
const (
	maxSpans      = 2048             // that wait to be sent; more are dropped
	exportTime    = 10 * time.Second // for one request to the collector, with its repetitions
	flushTime     = 2 * time.Second  // at the end, out of the 30 s that a server has to stop
	maxAttribute  = 200              // characters
	exportLogTime = time.Minute      // for one complaint
)

// tracing sends spans to an OpenTelemetry collector. Nil opens no spans.
type tracing struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	log      zerolog.Logger
}

// startTracing prepares what the configuration asks for, nil where traces are off; nothing is sent yet.
func startTracing(ctx context.Context, c config.Tracing, node string, log zerolog.Logger) (*tracing, error) {
	if c.Endpoint == "" {
		return nil, nil
	}
	address, err := url.JoinPath(c.Endpoint, "v1/traces")
	if err != nil {
		return nil, fmt.Errorf("tracing.endpoint: %w", err)
	}
	exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(address), otlptracehttp.WithTimeout(exportTime))
	if err != nil {
		return nil, fmt.Errorf("tracing.endpoint: %w", err)
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxAttribute
	quiet := quietExporter{exporter, log.Sample(&zerolog.BurstSampler{Burst: 1, Period: exportLogTime})}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(quiet, sdktrace.WithMaxQueueSize(maxSpans), sdktrace.WithExportTimeout(exportTime)),
		sdktrace.WithIDGenerator(spanIDs{}), sdktrace.WithRawSpanLimits(limits), sdktrace.WithSampler(sdktrace.AlwaysSample()),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", "pawl"),
			attribute.String("service.version", buildInfo().Version), attribute.String("service.instance.id", node))),
	)
	return &tracing{provider: provider, tracer: provider.Tracer("github.com/pawlbot/pawl"), log: log}, nil
}

func (t *tracing) trace() solver.Trace {
	if t == nil {
		return nil
	}
	return t.span
}

// span opens a span. One that is within no other belongs to the delivery that it
// names: whichever node handles it and whenever, it is in the same trace.
func (t *tracing) span(ctx context.Context, name string, attrs ...string) (context.Context, func(error, ...string)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		for i := 0; i+1 < len(attrs); i += 2 {
			if attrs[i] == solver.TraceDelivery && attrs[i+1] != handlers.Reconciled {
				ctx = trace.ContextWithRemoteSpanContext(ctx, webhookSpan(attrs[i+1]))
			}
		}
	}
	ctx, s := t.tracer.Start(ctx, name, trace.WithAttributes(attributes(attrs)...))
	return ctx, func(err error, more ...string) {
		s.SetAttributes(attributes(more)...)
		if err != nil {
			// The error itself may quote anybody; the log has it.
			s.SetStatus(codes.Error, "")
		}
		s.End()
	}
}

func attributes(pairs []string) []attribute.KeyValue {
	var list []attribute.KeyValue
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return list
}

// close sends what is left, if the collector takes it soon.
func (t *tracing) close() {
	if t == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushTime)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil {
		t.log.Warn().Err(err).Msg("the last spans were not sent")
	}
}

// webhookSpan is the span of a delivery's arrival, with ids made of the GUID, which the thread's log keeps.
func webhookSpan(guid string) trace.SpanContext {
	sum := sha256.Sum256([]byte("pawl delivery " + guid))
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID(sum[:16]), SpanID: trace.SpanID(sum[16:24]), TraceFlags: trace.FlagsSampled, Remote: true,
	})
}

// guidKey is the context's key for the GUID of the webhook whose span is opened.
type guidKey struct{}

// spanIDs gives webhooks the ids of their GUIDs and everything else random ones.
type spanIDs struct{}

func (g spanIDs) NewIDs(ctx context.Context) (t trace.TraceID, s trace.SpanID) {
	if guid, ok := ctx.Value(guidKey{}).(string); ok {
		w := webhookSpan(guid)
		return w.TraceID(), w.SpanID()
	}
	_, _ = rand.Read(t[:]) // never fails
	return t, g.NewSpanID(ctx, t)
}

func (spanIDs) NewSpanID(context.Context, trace.TraceID) (s trace.SpanID) {
	_, _ = rand.Read(s[:])
	return s
}

// hook opens a span for each webhook that was taken; anybody can send those that are refused.
func (t *tracing) hook(next http.Handler) http.Handler {
	if t == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := time.Now()
		answer := &tracedAnswer{ResponseWriter: w, status: http.StatusOK}
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

// tracedAnswer remembers the status of an answer, which is 200 where nobody says anything else.
type tracedAnswer struct {
	http.ResponseWriter
	status int
}

func (a *tracedAnswer) WriteHeader(status int) {
	a.status = status
	a.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the connection.
func (a *tracedAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// quietExporter makes a collector's failures a line in the log now and then.
type quietExporter struct {
	sdktrace.SpanExporter
	log zerolog.Logger
}

// ExportSpans implements sdktrace.SpanExporter. It never fails.
func (c quietExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := c.SpanExporter.ExportSpans(ctx, spans); err != nil {
		text := err.Error()
		c.log.Warn().Str("error", text[:min(len(text), maxAttribute)]).Int("spans", len(spans)).Msg("spans were not taken by tracing.endpoint and are lost")
	}
	return nil
}
