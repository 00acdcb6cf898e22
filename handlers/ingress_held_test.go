package handlers

import (
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
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

// heldHouse is an ingress on loopback and a client that begins with a body when
// the server begins to read it.
func heldHouse(t *testing.T) (*Ingress, string, *http.Client) {
	t.Helper()
	in, err := NewIngress([]string{vectorSecret}, new(Handlers).EventHandlers(), &kept{}, time.Now, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	in.bodyTime = time.Hour // a body that is held back here is not late, on a busy machine either
	srv := httptest.NewServer(in)
	t.Cleanup(srv.Close)
	client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour}}
	t.Cleanup(client.CloseIdleConnections)
	return in, srv.URL, client
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
			in, url, client := heldHouse(t)
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
			if got := in.held.Load(); got != 0 {
				t.Errorf("%d bytes are held when all are answered, want 0", got)
			}
		})
	}
}

func TestLargeBodiesThatDoNotFitBesideOthersAreAnsweredLater(t *testing.T) {
	in, url, client := heldHouse(t)
	most := strings.Repeat(" ", 24<<20)
	var ends []*io.PipeWriter
	var answers []chan int
	for range 2 { // all of the 48 MiB that large ones may fill
		end, answer := begun(t, client, url, most, -1)
		ends, answers = append(ends, end), append(answers, answer)
	}
	for in.held.Load() < 2*24<<20 { // the last bytes are on their way
		runtime.Gosched()
	}
	resp := post(t, client, url, strings.NewReader(most[:smallBody+100]), smallBody+100)
	if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") != "1" {
		t.Errorf("the third was answered %d, to be sent again after %q; want 503 and 1", resp.StatusCode, resp.Header.Get("Retry-After"))
	}
	if got := post(t, client, url, strings.NewReader(vectorBody), int64(len(vectorBody))).StatusCode; got != http.StatusOK {
		t.Errorf("an ordinary one beside them was answered %d, want 200", got)
	}
	for i, end := range ends {
		end.Close()
		if got := <-answers[i]; got != http.StatusUnauthorized {
			t.Errorf("a body without a valid signature was answered %d, want 401", got)
		}
	}
	if got := in.held.Load(); got != 0 {
		t.Errorf("%d bytes are held when all are answered, want 0", got)
	}
}
