package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
)

// send makes one call of the provider. Transports do not follow redirects. A
// call that is broken off after it was sent is booked: the provider answers and
// charges all the same.
func (c *call) send(ctx context.Context, body []byte) (*http.Response, error) {
	p := c.grant.Provider
	url, err := p.target(c.route, c.in.URL.Query())
	if err != nil {
		return nil, err
	}
	var sent atomic.Bool
	reader, large := bytes.NewReader(body), len(body) >= largeRequest
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			sent.Store(true)
			if large {
				reader.Reset(nil) // the transport holds the request until the answer ends
			}
			c.bodySent()
		}
	}})
	req, err := http.NewRequestWithContext(ctx, c.route.method, url, reader)
	if err != nil {
		return nil, err
	}
	if large {
		req.GetBody = nil // it would hold the body, too
	}
	req.Header = outbound(c.in.Header, p)
	c.change(func(u *Usage) { u.Requests++ })
	resp, err := c.gateway.transport.RoundTrip(req)
	if err == nil {
		err = plainBody(resp)
	}
	if err != nil && sent.Load() && readerOf(c.route.kind) != nil {
		var nothing answer
		nothing.settle(len(body))
		c.spend(c.req.model, nothing.tokens)
	}
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// plainBody undoes the compression of a server that does not heed
// Accept-Encoding. After an error the body is closed.
func plainBody(resp *http.Response) error {
	switch enc := strings.ToLower(resp.Header.Get("Content-Encoding")); enc {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(resp.Body)
		if err != nil {
			resp.Body.Close()
			return fmt.Errorf("read its gzip: %w", err)
		}
		resp.Body = struct {
			io.Reader
			io.Closer
		}{unzipped, resp.Body}
	default:
		resp.Body.Close()
		return fmt.Errorf("it answers in %s, which was not asked for", enc)
	}
	return nil
}

func isStream(resp *http.Response) bool {
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream")
}

// unreachable answers for a provider that did not.
func (c *call) unreachable(ctx context.Context, err error) {
	if ctx.Err() != nil { // the client left, or the attempt is over
		return
	}
	text := masked(err.Error(), c.grant.Provider.Key)
	c.gateway.log.Warn().Str("attempt", c.grant.Attempt).Str("provider", c.grant.Provider.Name).Str("error", text).Msg("the provider cannot be reached")
	refuse(c.route.protocol, http.StatusBadGateway, "the provider cannot be reached: "+text).write(c.w)
}

// refused passes an error of the provider on and reads whether it is a limit. A
// refusal of the key is put in our own words, since providers repeat a part of
// the key in theirs.
func (c *call) refused(resp *http.Response) {
	// An error of reading leaves a shorter body; the status tells the matter.
	body, _ := io.ReadAll(io.LimitReader(newRedactor(resp.Body, c.grant.Provider.Key), maxError))
	c.fail(readFailure(resp.StatusCode, resp.Header, body))
	inbound(c.w.Header(), resp.Header, c.grant.Provider.Key)
	if resp.StatusCode == http.StatusUnauthorized {
		refuse(c.route.protocol, resp.StatusCode, "the provider refuses the key that Pawl holds for it; whoever runs Pawl must correct it").write(c.w)
		return
	}
	c.w.WriteHeader(resp.StatusCode)
	c.w.Write(body)
}

// mostAsked is the longest answer in tokens that a CLI asks for by itself: Claude
// Code 2.1.197 does.
const mostAsked = 64_000

// fail tells of an error of the provider if it is a limit. What is said to calls
// that no model answers, as those for the list of models, is no word on the
// model or the account.
func (c *call) fail(f failure) {
	f.message = masked(f.message, c.grant.Provider.Key)
	l, isLimit := f.limit(c.gateway.now())
	if f.status == http.StatusPaymentRequired && c.req.most > mostAsked {
		isLimit = false // routers refuse so what the credit does not cover
	}
	counts := isLimit && readerOf(c.route.kind) != nil && c.limited(l, c.req.model, c.number, f.ofAccount())
	c.gateway.log.Info().Str("attempt", c.grant.Attempt).Str("call", string(c.route.kind)).Str("model", c.req.model).Int("status", f.status).
		Str("limit", l.Kind).Bool("counts", counts).Time("resets_at", l.ResetsAt).Msg("the provider refused")
}

// answers notes that the model answers this call.
func (c *call) answers() {
	c.change(func(*Usage) { c.standing.answers(c.grant, c.req.model, c.number) })
}
