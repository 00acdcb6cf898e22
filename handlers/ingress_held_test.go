package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// post sends a body and returns the answer. The client begins with the body
// when the server begins to read it.
func post(t *testing.T, client *http.Client, url string, body io.Reader, size int64) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return &http.Response{}
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": "a-b-c",
		"X-Hub-Signature-256": vectorSignature, "Expect": "100-continue"} {
		r.Header.Set(k, v)
	}
	r.ContentLength = size
	resp, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return &http.Response{}
	}
	resp.Body.Close()
	return resp
}

func TestBodiesThatDoNotFitBesideOthersAreAnsweredLater(t *testing.T) {
	for name, size := range map[string]int64{"of a known length": 25 << 20, "of unknown length": -1} {
		t.Run(name, func(t *testing.T) {
			in, err := NewIngress([]string{vectorSecret}, &kept{}, time.Now, zerolog.Nop())
			if err != nil {
				t.Fatal(err)
			}
			srv := httptest.NewServer(in)
			defer srv.Close()
			client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
			defer client.CloseIdleConnections()
			answers := make(chan int, 2)
			var ends []*io.PipeWriter
			for range 2 {
				body, end := io.Pipe()
				defer end.Close()
				ends = append(ends, end)
				go func() { answers <- post(t, client, srv.URL, body, size).StatusCode }()
				if _, err := end.Write([]byte("{")); err != nil {
					t.Fatal(err)
				}
			}
			// 50 of the 64 MiB are held now.
			resp := post(t, client, srv.URL, http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("{}")), 2), size)
			if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
				t.Errorf("the third was answered %d, to be sent again after %q; want 503 and 1", resp.StatusCode, resp.Header.Get("Retry-After"))
			}
			vector := func() int {
				return post(t, client, srv.URL, strings.NewReader(vectorBody), int64(len(vectorBody))).StatusCode
			}
			if got := vector(); got != http.StatusOK {
				t.Errorf("a small one beside them was answered %d, want 200", got)
			}
			rest := strings.Repeat(" ", max(0, int(size)-1))
			for _, end := range ends {
				if _, err := io.WriteString(end, rest); err != nil {
					t.Error(err)
				}
				end.Close()
				if got := <-answers; got != http.StatusUnauthorized {
					t.Errorf("a body without a valid signature was answered %d, want 401", got)
				}
			}
			if got := in.held.Load(); got != 0 {
				t.Errorf("%d bytes are held when all are answered, want 0", got)
			}
		})
	}
}
