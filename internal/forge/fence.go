package forge

import (
	"context"
	"net/http"
)

// fenceKey is where a context holds its fence.
type fenceKey struct{}

// WithFence returns a context whose writes are fenced: right before each request
// that changes something is sent, after all waiting for limits and places, fence
// is asked, and its error keeps the request from being sent. A fence that will
// never let anything through again should end the context, so that no further
// try is made. It is for callers that may have lost the right to write while
// they waited, or while their process was stopped.
func WithFence(ctx context.Context, fence func(context.Context) error) context.Context {
	return context.WithValue(ctx, fenceKey{}, fence)
}

// fenced asks the fence of a request's context.
func fenced(req *http.Request) error {
	fence, ok := req.Context().Value(fenceKey{}).(func(context.Context) error)
	if !ok || req.Method == http.MethodGet || req.Method == http.MethodHead {
		return nil
	}
	return fence(req.Context())
}
