package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
)

const (
	proxyStreams = 64        // simultaneous answers: four attempts with sixteen each
	proxyBody    = 101 << 10 // bytes of a request, as in an agent's first turns
	proxyRounds  = 20
	proxyPause   = 40 * time.Millisecond // between an answer's eight events, unless all calls begin at the same time
	// proxyAim limits the gateway's added time to the first byte, relative to httputil.ReverseProxy.
	proxyAim = 1.5
)

// measureProxy compares how much three proxies delay the first byte of a streamed answer: httputil.ReverseProxy, a
// ReverseProxy that also checks the request with encoding/json, and the gateway. Streams that begin at the same time
// measure CPU time. Streams that begin one by one while others are open are like agents' streams.
func measureProxy(ctx context.Context, _, _ string) (rows []row, notes []string, err error) {
	answer := "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":\"Hello there.\"}\n\n"
	var pause atomic.Int64
	provider := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		for range 8 {
			fmt.Fprint(w, answer)
			w.(http.Flusher).Flush()
			time.Sleep(time.Duration(pause.Load()))
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
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: transport(), FlushInterval: -1}
	reverse := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex() // otherwise the server drops the unread part of the body
		proxy.ServeHTTP(w, r)
	}))
	defer reverse.Close()
	reading := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || !json.Valid(body) {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	}))
	defer reading.Close()
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
	ways := []struct {
		name string
		urls []string
	}{{"direct", []string{provider.URL}}, {"reverse", []string{reverse.URL}}, {"reading", []string{reading.URL}}, {"gateway", urls}}
	for _, mode := range []struct {
		what          string
		pause         time.Duration
		rounds, calls int
	}{{"that begin at the same time", 0, proxyRounds, 1}, {"that begin one by one", proxyPause, 4, 3}} {
		pause.Store(int64(mode.pause))
		first, busy := map[string][]time.Duration{}, map[string]time.Duration{}
		asked := 0
		for range mode.rounds {
			for _, way := range ways {
				began := processorTime()
				took, err := ask(ctx, mode.pause, mode.calls, func(i int) (time.Duration, error) {
					body := fmt.Sprintf(`%s{"n":%d}]}`, head, asked*proxyStreams+i)
					return firstByte(ctx, client, way.urls[i%len(way.urls)]+"/v1/responses", tokens[i%len(tokens)], body)
				})
				busy[way.name] += processorTime() - began
				asked += mode.calls
				if err != nil {
					return nil, nil, fmt.Errorf("ask %s: %w", way.name, err)
				}
				first[way.name] = append(first[way.name], took...)
			}
		}
		p50 := func(name string) time.Duration {
			slices.Sort(first[name])
			return first[name][len(first[name])/2]
		}
		direct := p50("direct")
		added := p50("gateway") - direct
		for _, than := range []struct{ name, words string }{{"reverse", "httputil.ReverseProxy"}, {"reading", "a ReverseProxy that checks the request's JSON"}} {
			theirs := p50(than.name) - direct
			ratio := added.Seconds() / max(theirs, time.Microsecond).Seconds()
			rows = append(rows, row{fmt.Sprintf("delay of the first byte by the gateway, %d streams %s, %d KiB, relative to %s", proxyStreams, mode.what, proxyBody>>10, than.words),
				fmt.Sprintf("%s, %.2f × its %s", ms(added), ratio, ms(theirs)), fmt.Sprintf("≤ %g ×", proxyAim), ratio <= proxyAim})
		}
		cost := func(name string) string {
			return ((busy[name] - busy["direct"]) / time.Duration(len(first[name]))).Round(10 * time.Microsecond).String()
		}
		notes = append(notes, fmt.Sprintf("Proxy, streams %s: without a proxy the first byte takes %s (median of %d). Additional processor time per answer: ReverseProxy %s, with a check of the JSON %s, gateway %s.",
			mode.what, ms(direct), len(first["direct"]), cost("reverse"), cost("reading"), cost("gateway")))
	}
	return rows, notes, nil
}

// processorTime returns the CPU time of this process: client, proxy and provider.
func processorTime() time.Duration {
	var used syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &used) // fails only for an invalid first argument
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// ask sends each stream's calls one after the other. With a pause, the streams' beginnings are spread evenly over the
// duration of an answer.
func ask(ctx context.Context, pause time.Duration, calls int, once func(i int) (time.Duration, error)) (took []time.Duration, err error) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range proxyStreams {
		all.Go(func() {
			_ = wait.For(ctx, 8*pause*time.Duration(i)/proxyStreams) // if the context ended, the first call fails
			for n := range calls {
				one, failed := once(n*proxyStreams + i)
				mu.Lock()
				took, err = append(took, one), errors.Join(err, failed)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return took, err
}

// firstByte sends a request and returns the time to the answer's first byte. It reads the whole answer.
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
		err = fmt.Errorf("status %d: %.200s", resp.StatusCode, rest)
	}
	return took, err
}
