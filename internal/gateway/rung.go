package gateway

import (
	"context"
	"errors"
	"io"
)

// nudge is what the second try adds to the conversation.
const nudge = "Do not deliberate further. Either call a tool now to get on with the task, or give your final answer now in a few sentences."

// splicer joins the second answer to the first for one protocol, so that the
// agent sees one. It is fed events and gives events, and does nothing else.
type splicer interface {
	// note is shown each event of the first answer that the agent gets.
	note(data []byte)
	// join closes what the first answer left open.
	join() []byte
	// second gives what an event of the second answer becomes; nil drops it.
	// first and next are what was read of the two answers so far.
	second(e fields, first, next *answer) []byte
}

// splicerOf gives the splicer of a kind of call, nil where there is none.
func splicerOf(kind callKind) splicer {
	switch kind {
	case responses:
		return newResponsesSplicer()
	case chat:
		return &chatSplicer{}
	case messages:
		return newMessagesSplicer()
	case generate:
		return &geminiSplicer{}
	}
	return nil
}

// opposite is the request of the second try: the other thinking mode and the
// nudge. It answers false where the request cannot be turned round.
func opposite(r request, kind callKind) ([]byte, bool) {
	f := objectOf(r.body)
	if f == nil {
		return nil, false
	}
	ok := false
	switch kind {
	case responses:
		ok = turnResponses(f, r.model)
	case chat:
		ok = turnChat(f, r.model)
	case messages:
		ok = turnMessages(f)
	case generate:
		ok = turnGemini(f, r.model)
	}
	if !ok {
		return nil, false
	}
	return encoded(f), true
}

// guarded reports whether rung 1 watches over this call.
func (c *call) guarded() bool {
	return c.grant.NoAnswer.MaxBytes > 0 && c.req.tools && c.req.body != nil && splicerOf(c.route.kind) != nil
}

// guard passes a streamed answer on and tries once more if it comes to nothing.
// The end of an empty answer is held back until that is decided.
func (c *call) guard(ctx context.Context, s *strand, halt context.CancelFunc) error {
	join := splicerOf(c.route.kind)
	var held []event
	for {
		e, err := s.next(c.flush)
		if err != nil {
			if errors.Is(err, io.EOF) && s.said.nothing() {
				if done, again := c.again(ctx, s, join, halt); done {
					return again
				}
			}
			return errors.Join(c.showAll(held), err)
		}
		if s.said.nothing() {
			if held = append(held, e); !s.said.over {
				continue
			}
			if done, err := c.again(ctx, s, join, halt); done {
				return err
			}
			return errors.Join(c.showAll(held), c.pass(s))
		}
		held = append(held, e)
		for _, e := range held {
			join.note(e.data)
		}
		if err := c.showAll(held); err != nil {
			return err
		}
		held = held[:0]
		if s.said.prose > c.grant.NoAnswer.MaxBytes && !s.said.tool && !s.said.ended && s.said.failure == nil {
			c.flush() // the second try may take its time
			if done, err := c.again(ctx, s, join, halt); done {
				return err
			}
			return c.pass(s)
		}
		if s.said.tool {
			return c.pass(s) // it has begun to work
		}
	}
}

func (c *call) showAll(events []event) error {
	for _, e := range events {
		if err := c.show(e); err != nil {
			return err
		}
	}
	return nil
}

// again makes the second try. It answers false when nothing came of it, and then
// the first answer must go on as if there had been none: its connection stays
// open until the second answer has begun.
func (c *call) again(ctx context.Context, first *strand, join splicer, halt context.CancelFunc) (done bool, err error) {
	body, ok := opposite(c.req, c.route.kind)
	if !ok || !c.mayRepeat(ctx, first.said) {
		return false, nil
	}
	c.change(func(u *Usage) { u.NoAnswer.Times++ })
	c.gateway.log.Info().Str("attempt", c.grant.Attempt).Str("model", c.req.model).Int("bytes", first.said.prose).Msg("no answer yet, trying once more")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	resp, err := c.send(ctx, body)
	if err != nil {
		return false, nil // the first answer tells how it ended
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 || !isStream(resp) {
		text, _ := io.ReadAll(io.LimitReader(newRedactor(resp.Body, c.grant.Provider.Key), maxError))
		if resp.StatusCode >= 400 {
			c.fail(readFailure(resp.StatusCode, resp.Header, text))
		}
		return false, nil
	}
	second := newStrand(resp, first.read, c.grant.Provider.Key, c.answers)
	defer func() { c.accountSecond(&second.said) }()
	if done, err = c.splice(first, second, join, halt); done {
		first.said = c.firstOf(first, second)
		first.said.ended = false // the two are one turn
	}
	return done, err
}

// mayRepeat asks the breaker and the budget, with what the first answer used.
// That there is no second try refuses nothing, so nothing is recorded.
func (c *call) mayRepeat(ctx context.Context, said answer) bool {
	said.settle(c.req.size)
	if c.grant.Limited != nil {
		if _, closed := c.grant.Limited(ctx); closed {
			return false
		}
	}
	return c.leaves(c.req.model, said.tokens, c.reserved)
}

// splice passes the second answer on as the rest of the first. What comes before
// the model is seen at work is kept until then.
func (c *call) splice(first, second *strand, join splicer, halt context.CancelFunc) (done bool, err error) {
	kept := join.join()
	begun := false
	for {
		idle := c.flush
		if !begun {
			idle = func() {}
		}
		e, err := second.next(idle)
		if err != nil {
			return begun, err
		}
		if !begun && second.said.failure != nil {
			return false, nil
		}
		out := e.raw // [DONE], comments and what is not of the protocol pass as they are
		if f := objectOf(e.data); f != nil {
			told := c.firstOf(first, second)
			out = join.second(f, &told, &second.said)
		}
		if c.req.countAdded && onlyCount(e.data) {
			out = nil
		}
		if !begun {
			kept = append(kept, out...)
			if !second.said.begun() {
				continue
			}
			begun = true
			halt()
			first.queue, first.err = nil, io.EOF
			out = kept
		}
		if err := c.put(out); err != nil {
			return true, err
		}
	}
}

// firstOf gives the figures of the first answer as far as they are known. Both
// tries sent the same conversation, so what the second tells of its input is
// the best estimate of the first's.
func (c *call) firstOf(first, second *strand) answer {
	told := first.said
	if !told.inputTold && second.said.inputTold {
		told.tokens.input, told.tokens.estimated, told.inputTold = second.said.tokens.input, second.said.tokens.input, true
	}
	told.settle(c.req.size)
	if told.messages.output < told.tokens.output {
		told.messages.output = told.tokens.output
	}
	return told
}

// accountSecond books the second answer: its tokens are the attempt's, too.
func (c *call) accountSecond(said *answer) {
	if said.failure != nil {
		c.fail(readFailure(0, nil, said.failure))
	}
	if said.inputTold || said.begun() {
		said.settle(c.req.size)
		c.spend(c.req.model, said.tokens)
	}
	if said.failure == nil && said.ended {
		c.turn()
	}
	c.change(func(u *Usage) {
		u.NoAnswer.Tokens += said.tokens.input + said.tokens.output
		if said.failure == nil && said.ended && (said.tool || said.text && said.prose <= c.grant.NoAnswer.MaxBytes) {
			u.NoAnswer.Recovered++
		}
	})
}
