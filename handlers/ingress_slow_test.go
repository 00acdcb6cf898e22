package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// post sends a body and returns the status of the answer.
func post(t *testing.T, client *http.Client, url string, body io.Reader, size int64) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return 0
	}
	asGitHub(r.Header)
	r.Header.Set("Expect", "100-continue")
	r.ContentLength = size
	resp, err := client.Do(r)
	if err != nil {
		t.Error(err)
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// slowIngress returns an ingress on loopback and a client that sends a body once the server reads it.
func slowIngress(t *testing.T) (string, *http.Client) {
	t.Helper()
	srv := httptest.NewServer(newIngress(t, new(memoryStore)))
	t.Cleanup(srv.Close)
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
	t.Cleanup(client.CloseIdleConnections)
	return srv.URL, client
}

// begun sends the beginning of a body. The caller writes the rest to end.
func begun(t *testing.T, client *http.Client, url string, beginning string, size int64) (end *io.PipeWriter, answer chan int) {
	t.Helper()
	body, end := io.Pipe()
	answer = make(chan int, 1)
	t.Cleanup(func() { end.Close() })
	go func() { answer <- post(t, client, url, body, size) }()
	if _, err := io.WriteString(end, beginning); err != nil {
		t.Fatal(err)
	}
	return end, answer
}

func TestIncompleteBodyBlocksNoOtherRequest(t *testing.T) {
	for name, size := range map[string]int64{"of a known length": 25 << 20, "of unknown length": -1} {
		t.Run(name, func(t *testing.T) {
			url, client := slowIngress(t)
			var ends []*io.PipeWriter
			var answers []chan int
			for range 5 {
				end, answer := begun(t, client, url, "{", size)
				ends, answers = append(ends, end), append(answers, answer)
			}
			if got := post(t, client, url, strings.NewReader(vectorBody), int64(len(vectorBody))); got != http.StatusOK {
				t.Errorf("an ordinary body next to five large ones got status %d, want 200", got)
			}
			large := strings.Repeat(" ", 24<<20)
			if got := post(t, client, url, strings.NewReader(large), int64(len(large))); got != http.StatusUnauthorized {
				t.Errorf("a large body without a valid signature got status %d, want 401", got)
			}
			for i, end := range ends {
				if size > 0 {
					if _, err := io.WriteString(end, strings.Repeat(" ", int(size)-1)); err != nil {
						t.Error(err)
					}
				}
				end.Close()
				if got := <-answers[i]; got != http.StatusUnauthorized {
					t.Errorf("a body without a valid signature got status %d, want 401", got)
				}
			}
		})
	}
}
