package forge

import (
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/pawlbot/pawl/internal/wait"
)

// inside carries requests to a server in the same process, so that they run in virtual time. delay is the duration of
// each direction.
type inside struct {
	server http.Handler
	delay  func() time.Duration
}

func (t inside) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	ctx := req.Context()
	if err := wait.For(ctx, t.delay()); err != nil {
		return nil, err
	}
	in := req.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	rec := httptest.NewRecorder()
	defer func() {
		if e := recover(); e == http.ErrAbortHandler {
			resp, err = nil, io.ErrUnexpectedEOF
		} else if e != nil {
			panic(e)
		}
		if ctx.Err() != nil {
			resp, err = nil, ctx.Err()
		}
	}()
	t.server.ServeHTTP(rec, in)
	if err := wait.For(ctx, t.delay()); err != nil {
		return nil, err
	}
	return rec.Result(), nil
}
