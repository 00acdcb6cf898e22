package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/pawlbot/pawl/internal/limit"
)

// nudge is what the second try adds to the conversation.
const nudge = "Do not deliberate further. Either call a tool now to get on with the task, or give your final answer now in a few sentences."

// maxHeld bounds what is held back of an answer in bytes, of which the prose that Grant.NoAnswerBytes bounds is
// a tenth at most.
const maxHeld = 8 << 20

// keepAlives are what an agent gets while an answer is held back: what its CLI takes for a sign of life. Codex
// 0.169.0 gives a stream up after five minutes without an event, of which a comment is none. Claude Code counts
// no pings, which is why internal/agent has it wait longer. OpenCode watches for bytes. Gemini CLI 0.61.0 fails
// over a comment and skips empty lines.
var keepAlives = map[callKind]string{
	responses: "event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n",
	messages:  "event: ping\ndata: {\"type\":\"ping\"}\n\n",
	chat:      ": keep-alive\n\n",
	generate:  "\n",
}

func (c *call) guarded() bool {
	return c.grant.NoAnswerBytes > 0 && c.req.tools && c.req.body != "" && keepAlives[c.route.kind] != ""
}

// held is an answer that is kept from the agent until it calls a tool or ends with a text. One that comes to
// nothing is asked for once more, and the agent sees the second answer alone.
type held struct {
	*call
	first, second *stream // second is nil where there was no second try
	cancel        context.CancelFunc
	alive         chan struct{} // holds one while the provider has said something
	decided       chan *stream  // gives the one that counts
	counts        *stream       // nil until Read knows it
	over          chan struct{} // closed when nothing but Read reads the answers
}

// hold holds an answer back. out is the request that led to it.
func (c *call) hold(ctx context.Context, first *stream, out *http.Request) io.ReadCloser {
	ctx, cancel := context.WithCancel(ctx)
	h := &held{call: c, first: first, cancel: cancel, alive: make(chan struct{}, 1), decided: make(chan *stream, 1), over: make(chan struct{})}
	go func() {
		defer close(h.over)
		if h.comesToNothing() && h.again(ctx, out) {
			h.decided <- h.second
		} else {
			h.decided <- h.first
		}
	}()
	return h
}

// Read gives a sign of life as often as the provider does, and then the answer.
func (h *held) Read(p []byte) (int, error) {
	for h.counts == nil {
		select {
		case h.counts = <-h.decided:
		case <-h.alive:
			return copy(p, keepAlives[h.route.kind]), nil
		}
	}
	return h.counts.Read(p)
}

// Close books both answers.
func (h *held) Close() error {
	h.cancel()
	h.first.from.Close() // so that nobody waits for it
	<-h.over
	var err error
	if h.second != nil {
		err = h.second.Close()
		// Both tries sent the same conversation: what the second tells of its input is the best estimate.
		if said, second := &h.first.said, &h.second.said; !said.inputKnown && second.inputKnown {
			said.tokens.input, said.tokens.estimated, said.inputKnown = second.tokens.input, second.tokens.input, true
		}
	}
	return errors.Join(err, h.first.Close())
}

// beat notes that the provider said something. Only then the agent hears of it,
// so that one whose provider falls silent still notices.
func (h *held) beat() {
	select {
	case h.alive <- struct{}{}:
	default:
	}
}

// comesToNothing reads the first answer until that is known: it ends without a
// call of a tool and without a text, or goes on for too long without a call.
func (h *held) comesToNothing() bool {
	for s := h.first; ; h.beat() {
		s.next()
		switch {
		case s.said.tool || s.said.failure != nil:
			return false
		case s.said.prose > h.grant.NoAnswerBytes:
			return true
		case s.said.over || errors.Is(s.err, io.EOF):
			return s.said.nothing()
		case s.err != nil || s.out.Len() > maxHeld:
			return false
		}
	}
}

// again makes the second try and halts the first answer when the second has begun; false: nothing came of it,
// and the first one goes on.
func (h *held) again(ctx context.Context, out *http.Request) bool {
	body, ok := opposite(h.req, h.route.kind)
	if !ok || !h.mayRepeat(ctx, h.first.said) {
		return false
	}
	h.change(func(u *Usage) { u.NoAnswer.Times++ })
	h.gateway.Log.Info().Str("attempt", h.grant.Attempt).Str("model", h.req.model).Int("bytes", h.first.said.prose).Msg("no answer yet, trying once more")
	resp, err := h.send(ctx, out, body)
	if err != nil {
		return false // the first answer tells how it ended
	}
	if resp.StatusCode >= 300 || !isStream(resp) {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxError))
		if resp.StatusCode >= 400 {
			h.fail(limit.Read(resp.StatusCode, resp.Header, text))
		}
		return false
	}
	s := h.newStream(resp)
	s.book, h.second = h.accountSecond, s
	for s.err == nil && !s.said.begun() && s.said.failure == nil {
		s.next()
		h.beat()
	}
	if !s.said.begun() || s.said.failure != nil {
		return false
	}
	h.first.from.Close()
	h.first.said.ended = false // the two are one turn
	return true
}

// mayRepeat asks the breaker and the budget, with what the first answer used.
// That there is no second try refuses nothing, so nothing is recorded.
func (c *call) mayRepeat(ctx context.Context, said answer) bool {
	said.settle(c.req.size)
	_, closed := c.grant.Limited(ctx)
	return !closed && c.leaves(c.req.model, said.tokens, c.reserved)
}

// accountSecond books the second answer: its tokens are the attempt's, too.
func (c *call) accountSecond(said *answer) {
	if said.failure != nil {
		c.fail(limit.Read(0, nil, said.failure))
	}
	if said.inputKnown || said.begun() {
		said.settle(c.req.size)
		c.spend(c.req.model, said.tokens)
	}
	if said.failure == nil && said.ended {
		c.turn()
	}
	c.change(func(u *Usage) {
		u.NoAnswer.Tokens += said.tokens.input + said.tokens.output
		if said.failure == nil && said.ended && (said.tool || said.text && said.prose <= c.grant.NoAnswerBytes) {
			u.NoAnswer.Recovered++
		}
	})
}
