package gateway

import (
	"bytes"
	"errors"
	"io"
	"net/http"
)

// maxWhole bounds an answer that is read after it has passed, in bytes. A longer
// one passes, and its tokens are estimated.
const maxWhole = 32 << 20

// whole passes an answer on that is not a stream, and reads it afterwards.
func (c *call) whole(resp *http.Response) {
	var kept bytes.Buffer
	var said answer
	length := 0
	read := readerOf(c.route.kind)
	defer func() {
		if read == nil {
			return
		}
		if length <= maxWhole {
			read(kept.Bytes(), &said)
		}
		said.prose = max(said.prose, length)
		c.account(&said)
	}()
	inbound(c.w.Header(), resp.Header, c.grant.Provider.Key)
	c.w.WriteHeader(resp.StatusCode)
	body := newRedactor(resp.Body, c.grant.Provider.Key)
	buf := make([]byte, 32<<10)
	for {
		n, err := body.Read(buf)
		length += n
		if read != nil && length <= maxWhole {
			kept.Write(buf[:n])
		}
		if _, err := c.w.Write(buf[:n]); err != nil {
			return // the client left
		}
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			panic(http.ErrAbortHandler) // ends the connection as the provider's did
		}
		if c.rc.Flush() != nil {
			return
		}
	}
}

// account books what an answer came to.
func (c *call) account(said *answer) {
	said.settle(c.req.size)
	c.spend(c.req.model, said.tokens)
	if said.failure != nil {
		c.fail(readFailure(0, nil, said.failure))
	} else if said.ended {
		c.answers()
		c.turn()
	}
	c.gateway.log.Debug().Str("attempt", c.grant.Attempt).Str("call", string(c.route.kind)).Str("model", c.req.model).
		Int64("input", said.tokens.input).Int64("output", said.tokens.output).Bool("ended", said.ended).Msg("the provider answered")
}

// turn counts an answer of the model.
func (c *call) turn() { c.change(func(u *Usage) { u.Turns++ }) }
