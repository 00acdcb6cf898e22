package gateway

import (
	"net/http"
	"sync/atomic"
	"testing"
)

// Requests after an answer are signs of life too. Error pages and repeated requests are not.
func TestAnswersCountAsSignsOfLife(t *testing.T) {
	drip := func(w http.ResponseWriter, r *http.Request) {
		for range 3 {
			sse(": ping\n\n")(w, r)
		}
		sse(ev("message_start", `"message":{}`), ev("content_block_start", `"content_block":{"type":"text","text":"a"}`), ev("message_delta", `"delta":{"stop_reason":"end_turn"}`), ev("message_stop", ``))(w, r)
	}
	var signs atomic.Int32
	p := newProvider(t, drip, plain(503, `{"type":"error","error":{"type":"overloaded_error","message":"x"}}`))
	s := open(t, Anthropic, p.URL, func(g *Grant) { g.OnLife = func() { signs.Add(1) } })
	s.post(t, "/v1/messages", `{"model":"m","stream":true}`)
	first := signs.Swap(0)
	for range 5 {
		s.post(t, "/v1/messages", `{"model":"m","stream":true}`)
	}
	if refused := signs.Load(); first < 2 || refused != 1 {
		t.Errorf("an answer gave %d signs of life, five refusals after it %d; want more than one, and one for the first request", first, refused)
	}
}
