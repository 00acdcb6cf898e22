package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/policy"
)

const (
	proxyStreams = 64        // answers at the same time, four of an attempt's sixteen
	proxyBody    = 101 << 10 // bytes of a request, as of an agent's first turns
	proxyRounds  = 20
	// proxyAim is how many times as much as httputil.ReverseProxy the gateway may add to the first byte.
	proxyAim = 1.5
)

// measureProxy has agents ask a provider by themselves, through httputil.ReverseProxy and through the gateway, in turns,
// and compares what the two add to the time until the first byte of a streamed answer.
func measureProxy(ctx context.Context, _, _ string) (rows []row, notes []string, err error) {
	answer := "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello there.\"}\n\n"
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 8 {
			fmt.Fprint(w, answer)
			w.(http.Flusher).Flush()
		}
		fmt.Fprint(w, "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"object\":\"response\",\"status\":\"completed\",\"usage\":{\"input_tokens\":9,\"output_tokens\":9}}}\n\n")
	}))
	defer provider.Close()
	target, err := url.Parse(provider.URL)
	if err != nil {
		return nil, nil, err
	}
	transport := func() *http.Transport {
		return &http.Transport{MaxIdleConnsPerHost: proxyStreams, DisableCompression: true}
	}
	reverse := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport(), FlushInterval: -1,
	})
	defer reverse.Close()
	g := gateway.New(gateway.Options{Now: time.Now, Log: zerolog.Nop(), Transport: transport()})
	var tokens, urls []string
	for range proxyStreams / 16 {
		s := g.Open(gateway.Grant{
			Provider: config.Provider{Name: "p", Protocol: config.OpenAI, BaseURL: provider.URL + "/v1"}, NoAnswerBytes: 1 << 20,
			Limited: func(context.Context) (policy.Limit, bool) { return policy.Limit{}, false }, OnLimit: func(policy.Limit) {},
			OnFruitless: func(string, bool) {}, OnLife: func() {},
		})
		defer s.Close()
		at, err := s.Listen()
		if err != nil {
			return nil, nil, err
		}
		tokens, urls = append(tokens, s.Token()), append(urls, at)
	}
	const turn = `{"type":"message","role":"user","content":[{"type":"input_text","text":"some \"context\"\nof a file"}]},`
	head := `{"model":"m","stream":true,"tools":[{"type":"function","name":"shell"}],"input":[` + strings.Repeat(turn, proxyBody/len(turn))
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: proxyStreams}}
	asked := 0
	first := map[string][]time.Duration{}
	for range proxyRounds {
		for _, way := range []struct {
			name string
			urls []string
		}{{"direct", []string{provider.URL}}, {"reverse", []string{reverse.URL}}, {"gateway", urls}} {
			var mu sync.Mutex
			var all sync.WaitGroup
			for i := range proxyStreams {
				asked++
				body := fmt.Sprintf(`%s{"n":%d}]}`, head, asked)
				all.Go(func() {
					took, failed := firstByte(ctx, client, way.urls[i%len(way.urls)]+"/v1/responses", tokens[i%len(tokens)], body)
					mu.Lock()
					defer mu.Unlock()
					if first[way.name] = append(first[way.name], took); failed != nil {
						err = failed
					}
				})
			}
			all.Wait()
			if err != nil {
				return nil, nil, fmt.Errorf("ask %s: %w", way.name, err)
			}
		}
	}
	p50 := func(name string) time.Duration {
		slices.Sort(first[name])
		return first[name][len(first[name])/2]
	}
	direct := p50("direct")
	added, theirs := p50("gateway")-direct, p50("reverse")-direct
	ratio := added.Seconds() / max(theirs, time.Microsecond).Seconds()
	rows = append(rows, row{fmt.Sprintf("first byte, added by the gateway, %d streams of %d KiB", proxyStreams, proxyBody>>10),
		fmt.Sprintf("%s, %.2f × httputil.ReverseProxy's %s", ms(added), ratio, ms(theirs)), fmt.Sprintf("≤ %g ×", proxyAim), ratio <= proxyAim})
	return rows, []string{fmt.Sprintf("\nProxy: without one the first byte takes %s (p50 of %d); all streams begin at once.", ms(direct), len(first["direct"]))}, nil
}

// firstByte asks once and gives how long the first byte of the answer took; the answer is read to its end.
func firstByte(ctx context.Context, client *http.Client, url, token, body string) (time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return 0, err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	began := time.Now()
	resp, err := client.Do(r)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
		return 0, err
	}
	took := time.Since(began)
	rest, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || !strings.Contains(string(rest), "response.completed")) {
		err = fmt.Errorf("answered %d: %.200s", resp.StatusCode, rest)
	}
	return took, err
}
