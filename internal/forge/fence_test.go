package forge

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

func TestWhatTheFenceRefusesIsNotSent(t *testing.T) {
	h, c := start(t)
	lost := errors.New("somebody else writes now")
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	open := true
	fenced := WithFence(ctx, func(context.Context) error {
		if open {
			return nil
		}
		end(lost)
		return lost
	})
	write := func() error {
		_, err := c.CreateComment(fenced, testRepo, 3, "hello", "<!-- mark -->")
		return err
	}
	if err := write(); err != nil {
		t.Fatalf("with the fence open: %v", err)
	}
	sent := len(h.calls("POST /repos/octo/hello/issues/3/comments"))
	open = false
	if err := write(); err == nil {
		t.Error("the comment was written")
	}
	if again := len(h.calls("POST /repos/octo/hello/issues/3/comments")); sent != 1 || again != 1 {
		t.Errorf("%d requests with the fence open and %d in all, want one", sent, again)
	}
}

func TestTheFenceIsForWritesOnly(t *testing.T) {
	closed := WithFence(t.Context(), func(context.Context) error { return errors.New("closed") })
	for method, refused := range map[string]bool{http.MethodGet: false, http.MethodPost: true, http.MethodPatch: true, http.MethodDelete: true} {
		req, err := http.NewRequestWithContext(closed, method, "http://127.0.0.1/", nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := fenced(req); (err != nil) != refused {
			t.Errorf("%s: %v, want refused: %v", method, err, refused)
		}
	}
}
