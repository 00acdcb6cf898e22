package gateway

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// BenchmarkFirstByte measures what the gateway adds to the time until the first
// byte of a streamed answer, on loopback: each round asks the provider directly
// and through the gateway, with requests as large as those of an agent's first
// turns and with one that fills a context of some 200,000 tokens.
func BenchmarkFirstByte(b *testing.B) {
	for _, size := range []int{100 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) { benchmarkFirstByte(b, size) })
	}
}

func benchmarkFirstByte(b *testing.B, size int) {
	p := newProvider(b, sse(ev("response.created", `"response":{"id":"r"}`), ev("response.completed", responsesCompleted)))
	s := open(b, OpenAI, p.URL, func(g *Grant) { g.NoAnswerBytes = 1 << 20 })
	turn := `{"type":"message","role":"user","content":[{"type":"input_text","text":"some \"context\"\nof a file"}]},`
	body := `{"model":"m","stream":true,"tools":[{"type":"function","name":"shell"}],"input":[` + strings.Repeat(turn, size/len(turn)) + `{}]}`
	first := func(url string) time.Duration {
		r, err := http.NewRequestWithContext(b.Context(), "POST", url, strings.NewReader(body))
		if err != nil {
			b.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+s.Token())
		began := time.Now()
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		took := time.Since(began)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			b.Fatal(err)
		}
		return took
	}
	var direct, proxied []time.Duration
	for b.Loop() {
		direct = append(direct, first(p.URL+"/v1/responses"))
		proxied = append(proxied, first(s.url+"/v1/responses"))
	}
	for _, at := range []struct {
		name string
		part float64
	}{{"p50", 0.50}, {"p99", 0.99}} {
		slices.Sort(direct)
		slices.Sort(proxied)
		n := int(at.part * float64(len(direct)-1))
		b.ReportMetric(float64((proxied[n] - direct[n]).Microseconds()), at.name+"-added-µs")
		b.ReportMetric(float64(direct[n].Microseconds()), at.name+"-direct-µs")
	}
	b.ReportMetric(0, "ns/op")
}
