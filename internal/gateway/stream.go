package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
)

// strand is one streamed answer of the provider while it is read.
type strand struct {
	body  io.Reader
	read  reader
	split splitter
	buf   []byte
	queue []event
	err   error
	said  answer
	// begins is called once, when the model is seen at work.
	begins func()
}

func newStrand(resp *http.Response, read reader, key string, begins func()) *strand {
	return &strand{body: newRedactor(resp.Body, key), read: read, begins: sync.OnceFunc(begins), buf: make([]byte, 32<<10)}
}

// next gives the next event, having read it. It calls idle before it may block.
// The error is io.EOF at the end of the stream, io.ErrUnexpectedEOF where it
// comes before that of the answer.
func (s *strand) next(idle func()) (event, error) {
	for len(s.queue) == 0 {
		if errors.Is(s.err, io.EOF) && s.said.cut() {
			return event{}, io.ErrUnexpectedEOF
		}
		if s.err != nil {
			return event{}, s.err
		}
		idle()
		n, err := s.body.Read(s.buf)
		s.split.feed(s.buf[:n], s.push)
		if err != nil {
			s.split.flush(s.push)
			s.err = err
		}
	}
	e := s.queue[0]
	s.queue = s.queue[1:]
	if s.read != nil && len(e.data) > 0 {
		s.read(e.data, &s.said)
		if s.said.begun() && s.said.failure == nil {
			s.begins()
		}
	}
	return e, nil
}

func (s *strand) push(e event) {
	raw := bytes.Clone(e.raw)
	kept := event{raw: raw}
	if e.data != nil {
		kept.data = dataOf(raw)
	}
	s.queue = append(s.queue, kept)
}

// errLeft means that the agent no longer reads.
var errLeft = errors.New("the agent left")

// stream passes a streamed answer on, event by event as they come.
func (c *call) stream(ctx context.Context, resp *http.Response, halt context.CancelFunc) {
	s := newStrand(resp, readerOf(c.route.kind), c.grant.Provider.Key, c.answers)
	inbound(c.w.Header(), resp.Header, c.grant.Provider.Key)
	c.w.WriteHeader(resp.StatusCode)
	if s.read != nil {
		defer func() { c.account(&s.said) }()
	}
	pass := c.pass
	if c.guarded() {
		pass = func(s *strand) error { return c.guard(ctx, s, halt) }
	}
	err := pass(s)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, errLeft) {
		panic(http.ErrAbortHandler) // ends the connection as the provider's did
	}
}

func (c *call) pass(s *strand) error {
	for {
		e, err := s.next(c.flush)
		if err != nil {
			return err
		}
		if err := c.show(e); err != nil {
			return err
		}
	}
}

// show gives an event to the agent, unless only the gateway asked for it.
func (c *call) show(e event) error {
	if c.req.countAdded && onlyCount(e.data) {
		return nil
	}
	return c.put(e.raw)
}

func (c *call) put(p []byte) error {
	if _, err := c.w.Write(p); err != nil {
		return errLeft
	}
	return nil
}

// flush sends what was written. An error shows at the next write.
func (c *call) flush() { _ = c.rc.Flush() }
