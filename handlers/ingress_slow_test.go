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
	resp, err := tryPost(t, client, url, body, size)
	if err != nil {
		t.Error(err)
		return &http.Response{}
	}
	resp.Body.Close()
	return resp
}

// tryPost also gives the error of a client whose connection was reset while it sent.
func tryPost(t *testing.T, client *http.Client, url string, body io.Reader, size int64) (*http.Response, error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, body)
	if err != nil {
		return nil, err
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": "a-b-c",
		"X-Hub-Signature-256": vectorSignature, "Expect": "100-continue"} {
		r.Header.Set(k, v)
	}
	r.ContentLength = size
	return client.Do(r)
}

// heldHouse is an ingress on loopback and a client that begins with a body when
// the server begins to read it.
func heldHouse(t *testing.T) (string, *http.Client) {
	t.Helper()
	in, err := NewIngress([]string{vectorSecret}, new(Handlers).EventHandlers(), &kept{}, time.Now, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(in)
	t.Cleanup(srv.Close)
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
	t.Cleanup(client.CloseIdleConnections)
	return srv.URL, client
}

// begun sends the beginning of a body, and the rest when it is told to end.
func begun(t *testing.T, client *http.Client, url string, beginning string, size int64) (end *io.PipeWriter, answer chan int) {
	t.Helper()
	body, end := io.Pipe()
	answer = make(chan int, 1)
	t.Cleanup(func() { end.Close() })
	go func() { answer <- post(t, client, url, body, size).StatusCode }()
	if _, err := io.WriteString(end, beginning); err != nil {
		t.Fatal(err)
	}
	return end, answer
}

func TestWhatIsAnnouncedAndDoesNotComeKeepsNobodyOut(t *testing.T) {
	for name, size := range map[string]int64{"of a known length": 25 << 20, "of unknown length": -1} {
		t.Run(name, func(t *testing.T) {
			url, client := heldHouse(t)
			var ends []*io.PipeWriter
			var answers []chan int
			for range 5 {
				end, answer := begun(t, client, url, "{", size)
				ends, answers = append(ends, end), append(answers, answer)
			}
			if got := post(t, client, url, strings.NewReader(vectorBody), int64(len(vectorBody))).StatusCode; got != http.StatusOK {
				t.Errorf("an ordinary one beside five large ones was answered %d, want 200", got)
			}
			large := strings.Repeat(" ", 24<<20)
			if got := post(t, client, url, strings.NewReader(large), int64(len(large))).StatusCode; got != http.StatusUnauthorized {
				t.Errorf("a large one without a valid signature was answered %d, want 401", got)
			}
			for i, end := range ends {
				if size > 0 {
					if _, err := io.WriteString(end, strings.Repeat(" ", int(size)-1)); err != nil {
						t.Error(err)
					}
				}
				end.Close()
				if got := <-answers[i]; got != http.StatusUnauthorized {
					t.Errorf("a body without a valid signature was answered %d, want 401", got)
				}
			}
		})
	}
}
