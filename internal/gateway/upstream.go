package gateway

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"
	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// exchange sends the call and rebuilds the answer with allowed headers only. An error means that the provider is
// unreachable.
func (c *call) exchange(ctx context.Context, out *http.Request) (*http.Response, error) {
	resp, err := c.send(ctx, out, c.req.body)
	c.bodySent()
	if err != nil {
		return nil, err
	}
	if c.req.size >= largeRequest { // free the body: answers may take minutes, and only rung 1 sends it again
		c.req.body, resp.Request = "", nil
	}
	if err := final(resp); err != nil {
		return nil, err
	}
	answer := &http.Response{
		StatusCode: resp.StatusCode,
		Header:     inbound(resp.Header, c.grant.Provider.Credential().Reveal()),
		Body:       resp.Body,
	}
	switch {
	case resp.StatusCode >= 400:
		answer.Body = c.refused(resp, answer.Header)
	case forms[c.route.kind].read == nil: // passes unread
	case c.streams(resp) && c.guarded():
		answer.Body = c.hold(ctx, c.newStream(resp), out)
	case c.streams(resp):
		answer.Body = c.newStream(resp)
	default:
		answer.Body = &whole{call: c, ReadCloser: resp.Body}
	}
	return answer, nil
}

// final closes and refuses redirects and provisional answers, which net/http would pass on.
func final(resp *http.Response) (err error) {
	switch {
	case resp.StatusCode < 200:
		err = fmt.Errorf("it answers with status %03d, which is not a final status", resp.StatusCode)
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		err = fmt.Errorf("it redirects (%d), which is not followed; correct base_url", resp.StatusCode)
	default:
		return nil
	}
	resp.Body.Close()
	return err
}

func bodyOf(r io.Reader, c io.Closer) io.ReadCloser {
	return struct {
		io.Reader
		io.Closer
	}{r, c}
}

// send calls the provider and masks its key in the answer. It replaces out's context, because
// ReverseProxy's would forward provisional answers (1xx) with all headers.
func (c *call) send(ctx context.Context, out *http.Request, body string) (*http.Response, error) {
	var sent atomic.Bool
	reader, large := strings.NewReader(body), len(body) >= largeRequest
	out = out.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(w httptrace.WroteRequestInfo) {
		if w.Err == nil {
			sent.Store(true)
			c.sends()
			if large {
				reader.Reset("") // free the body: the transport holds the request until the answer ends
			}
			c.bodySent()
		}
	}}))
	out.Body, out.ContentLength = io.NopCloser(reader), int64(len(body))
	if body == "" {
		out.Body = http.NoBody
	}
	if !large { // resend after a closed idle connection
		out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(strings.NewReader(body)), nil }
	}
	if err := c.pause(ctx); err != nil {
		return nil, err
	}
	c.change(func(u *Usage) { u.Requests++ })
	resp, err := c.gateway.Transport.RoundTrip(out)
	if err == nil && c.grant.Provider.Relay.URL != "" {
		err = relayError(resp)
	}
	if err == nil {
		err = plainBody(resp)
	}
	if err != nil {
		left := errors.Is(err, context.Canceled) && sent.Load()
		if left && forms[c.route.kind].read != nil {
			c.checkFruitless(new(answer))
		}
		return nil, err
	}
	c.meter(resp.Header)
	resp.Body = bodyOf(secret.MaskReader(alive{resp.Body, c, resp.StatusCode < 300}, c.grant.Provider.Credential().Reveal()), resp.Body)
	return resp, nil
}

// pause waits until the provider allows requests and tokens again. Other attempts on the account may use them meanwhile.
func (c *call) pause(ctx context.Context) error {
	c.mu.Lock()
	left := c.pausedTo.Sub(c.gateway.Now())
	c.mu.Unlock()
	return wait.For(ctx, left)
}

// meter passes on the usage windows that an answer reports, and pauses the session if a minute's limit is used up.
func (c *call) meter(h http.Header) {
	if pause := limit.Pause(h, c.gateway.Now()); pause > 0 {
		c.mu.Lock()
		c.pausedTo = c.gateway.Now().Add(pause)
		c.mu.Unlock()
	}
	c.reports(limit.Windows(h, c.gateway.Now()))
}

func (c *call) reports(windows []policy.Window) {
	if c.grant.OnWindows != nil && len(windows) > 0 {
		c.grant.OnWindows(windows)
	}
}

// sends reports a request as a sign of life. A repeated request without an answer does not count: a CLI may retry
// a dead provider endlessly.
func (c *call) sends() {
	c.mu.Lock()
	follows := c.usage.Turns >= c.lifeTurns
	if follows {
		c.lifeTurns = c.usage.Turns + 1
	}
	c.mu.Unlock()
	if follows && c.grant.OnLife != nil {
		c.grant.OnLife()
	}
}

// alive reports each piece of a good answer as a sign of life.
type alive struct {
	io.Reader
	*call
	good bool
}

func (a alive) Read(p []byte) (int, error) {
	n, err := a.Reader.Read(p)
	if n > 0 && a.good && a.grant.OnLife != nil {
		a.grant.OnLife()
	}
	return n, err
}

// plainBody decompresses an answer that ignores Accept-Encoding. An error closes the body.
func plainBody(resp *http.Response) error {
	switch enc := strings.ToLower(resp.Header.Get("Content-Encoding")); enc {
	case "", "identity":
	case "gzip":
		unzipped, err := gzip.NewReader(resp.Body)
		if err != nil {
			resp.Body.Close()
			return fmt.Errorf("read its gzip: %w", err)
		}
		resp.Body = bodyOf(unzipped, resp.Body)
	default:
		resp.Body.Close()
		return fmt.Errorf("it answers in %s, which Pawl did not ask for", enc)
	}
	return nil
}

// streams reports whether to read an answer while it passes. CLIs decide by their request, not by the content type.
func (c *call) streams(resp *http.Response) bool {
	return c.req.stream && !strings.Contains(strings.ToLower(resp.Header.Get("Content-Type")), "json")
}

// maxWhole limits a whole answer in bytes; longer ones are estimated.
const maxWhole = 32 << 20

// whole is an answer without a stream, read when it is closed.
type whole struct {
	*call
	io.ReadCloser
	kept   bytes.Buffer
	length int
	answer answer
}

func (w *whole) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	w.length += n
	if w.length <= maxWhole {
		w.kept.Write(p[:n])
	}
	w.answer.readTo(err)
	return n, err
}

// readTo records how reading ended; nil means that it continues.
func (a *answer) readTo(err error) {
	a.whole = errors.Is(err, io.EOF)
	a.broken = err != nil && !errors.Is(err, context.Canceled)
}

func (w *whole) Close() error {
	body := strings.TrimPrefix(w.kept.String(), byteOrderMark)
	e, ok := parsed(body)
	switch {
	case w.length > maxWhole:
		w.answer.other = w.length
		w.answer.ended = true
	case ok:
		forms[w.route.kind].read(e, &w.answer)
		if w.answer.begun() { // otherwise the JSON is not an answer of a model
			w.answer.other = max(w.answer.other, w.length-w.answer.prose-w.answer.thought)
		}
	default:
		w.readEvents(body)
	}
	w.judge(&w.answer)
	w.account(&w.answer)
	return w.ReadCloser.Close()
}

func (w *whole) readEvents(body string) {
	events := newSplitter(strings.NewReader(body))
	for err := error(nil); err == nil; {
		var data []byte
		_, data, err = events.next()
		w.answer.take(string(data), w.route.kind)
	}
}

// refused checks an error for a limit and returns the body for the agent. If the provider refused the key, the agent gets
// Pawl's message, since providers quote part of the key.
func (c *call) refused(resp *http.Response, header http.Header) io.ReadCloser {
	defer resp.Body.Close()
	// A read error only shortens the body.
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
	limited := limit.Answer(resp.StatusCode, resp.Header, body)
	c.fail(limited)
	why := ""
	if limited.Foreign() {
		c.concludes(Last{Ending: policy.Disconnected, Why: "a page instead of the provider's answer"})
		why = fmt.Sprintf("the provider cannot be reached: a page came instead of its API's answer (%d)", resp.StatusCode)
	} else {
		c.concludes(Last{Why: "the last call refused (" + strconv.Itoa(resp.StatusCode) + ")"})
		if resp.StatusCode == http.StatusUnauthorized {
			why = "the provider refuses the key that Pawl holds for it; the operator must correct " + c.grant.Provider.KeySource()
		}
	}
	if why != "" {
		header.Set("Content-Type", "application/json")
		body = []byte(encoded(refuse(c.route.protocol, resp.StatusCode, why).body))
	}
	return io.NopCloser(bytes.NewReader(body))
}

// mostAsked is the largest default output in tokens: Claude Code 2.1.197's.
const mostAsked = 64_000

// fail handles an error that is a limit. Calls without a model do not concern the account.
func (c *call) fail(f limit.Evidence) {
	f.Now = c.gateway.Now()
	reading := limit.Read(f)
	reading.Message = secret.Mask(reading.Message, c.grant.Provider.Credential().Reveal())
	l, isLimit := reading.Limit()
	level, source := zerolog.InfoLevel, ""
	if l.Kind == policy.Auth {
		// Only the gateway knows the key's source.
		level, source = zerolog.WarnLevel, c.grant.Provider.KeySource()
		l.Message += "; look at " + source
	}
	if f.Status == http.StatusPaymentRequired && c.req.most > mostAsked {
		isLimit = false // routers refuse a call whose maximum output the credit does not cover
	}
	counts := false
	if isLimit && forms[c.route.kind].read != nil {
		counts = c.limited(l, reading.OfAccount)
	}
	c.gateway.Log.WithLevel(level).
		Str("attempt", c.grant.Attempt).
		Str("provider", c.grant.Provider.Name).
		Str("call", string(c.route.kind)).
		Str("model", c.req.model).
		Int("status", f.Status).
		Str("limit", string(l.Kind)).
		Bool("counts", counts).
		Time("resets_at", l.ResetsAt).
		Str("key", source).
		Msg("the provider refused")
}

func (c *call) unreachable(w http.ResponseWriter, out *http.Request, err error) {
	if out.Context().Err() != nil { // the client left, or the attempt ended
		return
	}
	message := secret.Mask(err.Error(), c.grant.Provider.Credential().Reveal())
	c.concludes(Last{Ending: policy.Disconnected, Why: "the provider out of reach"})
	c.gateway.Log.Warn().Str("attempt", c.grant.Attempt).Str("provider", c.grant.Provider.Name).Str("error", message).Msg("the provider cannot be reached")
	refuse(c.route.protocol, http.StatusBadGateway, "the provider cannot be reached: "+message).write(w)
}

// account books an answer. Of two tries the visible one decides the result; both tries' tokens count. An answer
// without events and counts books nothing.
func (c *call) account(got *answer) {
	c.reports(limit.CodexWindows(gjson.ParseBytes(got.windows), c.gateway.Now()))
	if !got.replaced {
		c.checkFruitless(got)
		c.concludes(got.conclusion())
	}
	if got.begun() || got.other > 0 || got.inputKnown {
		got.settle(c.req.size)
		c.spend(c.req.model, got.tokens)
	}
	switch {
	case got.failure != nil:
		c.fail(limit.Answer(0, nil, got.failure))
	case got.ended && !got.replaced:
		c.answers()
		c.change(func(u *Usage) { u.Turns++ })
	}
	c.gateway.Log.Debug().
		Str("attempt", c.grant.Attempt).
		Str("call", string(c.route.kind)).
		Str("model", c.req.model).
		Int64("input_tokens", got.tokens.input).
		Int64("output_tokens", got.tokens.output).
		Bool("ended", got.ended).
		Msg("the provider answered")
}

// stream returns whole events unchanged, except for the usage event that the gateway requested. Close books the
// answer.
type stream struct {
	*call
	from   io.ReadCloser
	split  splitter
	out    bytes.Buffer // bytes read but not yet returned
	err    error        // how reading ended
	answer answer
	begins func() // called once, at the first event of a good answer
}

func (c *call) newStream(resp *http.Response) *stream {
	return &stream{
		call: c, from: resp.Body, split: newSplitter(resp.Body), begins: sync.OnceFunc(c.answers),
	}
}

// Read returns the next bytes: io.EOF at the stream's end, io.ErrUnexpectedEOF before the answer's end.
func (s *stream) Read(p []byte) (int, error) {
	for s.out.Len() == 0 && s.err == nil {
		s.next()
	}
	if s.out.Len() == 0 {
		return 0, s.err
	}
	return s.out.Read(p)
}

func (s *stream) Close() error {
	s.account(&s.answer)
	return s.from.Close()
}

func (s *stream) next() {
	raw, data, err := s.split.next()
	s.take(raw, string(data))
	s.err = err
	if errors.Is(err, io.EOF) && s.answer.cut() {
		s.err = io.ErrUnexpectedEOF
	}
	s.answer.readTo(s.err)
}

func (s *stream) take(raw []byte, data string) {
	if e, ok := s.answer.take(data, s.route.kind); ok {
		if s.answer.good() {
			s.begins()
		}
		s.judge(&s.answer)
		if s.req.usageAdded && onlyUsage(e) {
			return
		}
	}
	s.out.Write(raw)
}

// take reads an event's data. Events after an answer's end do not count, except Gemini's.
func (a *answer) take(data string, kind callKind) (e gjson.Result, ok bool) {
	if data == "[DONE]" {
		if kind == chat {
			a.over = true
		}
		return e, false
	}
	e, ok = parsed(data)
	after := a.over && kind != generate
	if ok && !after {
		forms[kind].read(e, a)
	}
	return e, ok
}
