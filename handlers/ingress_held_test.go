package handlers

import (
	"io"
	"net"
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
func heldHouse(t *testing.T) (*Ingress, string, *http.Client) {
	t.Helper()
	in, err := NewIngress([]string{vectorSecret}, new(Handlers).EventHandlers(), &kept{}, time.Now, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	in.held.bodyTime, in.held.grace = time.Hour, time.Hour // a body that is held back here is not late, on a busy machine either
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
			if got := in.held.now(); got != 0 {
				t.Errorf("%d bytes are held when all are answered, want 0", got)
			}
		})
	}
}

// now is what is held.
func (h *heldBodies) now() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.bytes
}

func TestTheSlowestBodyGivesWayToWhoComes(t *testing.T) {
	in, url, client := heldHouse(t)
	most := strings.Repeat(" ", 24<<20)
	var ends []*io.PipeWriter
	var answers []chan int
	for i := range 2 { // 48 of the 64 MiB
		end, answer := begun(t, client, url, most, -1)
		ends, answers = append(ends, end), append(answers, answer)
		for in.held.now() < int64(i+1)*24<<20 { // the last bytes are on their way
			runtime.Gosched()
		}
	}
	in.held.mu.Lock()
	for b := range in.held.bodies { // so that they are slower than the third, however slow the machine is
		b.began = b.began.Add(-time.Hour)
	}
	in.held.mu.Unlock()
	if got := post(t, client, url, strings.NewReader(most), int64(len(most))).StatusCode; got != http.StatusUnauthorized {
		t.Errorf("the third was answered %d, want 401: it was read", got)
	}
	if got := <-answers[0]; got != http.StatusServiceUnavailable {
		t.Errorf("the oldest of those that stand still was answered %d, want 503", got)
	}
	if got := post(t, client, url, strings.NewReader(vectorBody), int64(len(vectorBody))).StatusCode; got != http.StatusOK {
		t.Errorf("an ordinary one beside them was answered %d, want 200", got)
	}
	ends[1].Close()
	if got := <-answers[1]; got != http.StatusUnauthorized {
		t.Errorf("the other one was answered %d, want 401: it was not in the way", got)
	}
	for in.held.now() != 0 { // the dropped one's handler ends
		runtime.Gosched()
	}
}

func TestAnAddressThatHoldsMostGivesWayFirst(t *testing.T) {
	in, url, _ := heldHouse(t)
	from := func(address string) *http.Client {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
		client := &http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Hour, DialContext: dialer.DialContext}}
		t.Cleanup(client.CloseIdleConnections)
		return client
	}
	// Of an honest sender a part has come long ago, so that it is slower than all others.
	slow, slowAnswer := begun(t, from("127.0.0.2"), url, strings.Repeat(" ", 8<<10), -1)
	for in.held.now() == 0 {
		runtime.Gosched()
	}
	greedy := from("127.0.0.3")
	part := strings.Repeat(" ", 1<<20)
	answers := make(chan int, 70)
	var ends []*io.PipeWriter
	for range cap(answers) {
		body, end := io.Pipe()
		ends = append(ends, end)
		go func() {
			resp, err := tryPost(t, greedy, url, body, -1)
			if err != nil {
				answers <- http.StatusServiceUnavailable // cut off while it still sent
				return
			}
			resp.Body.Close()
			answers <- resp.StatusCode
		}()
		_, _ = io.WriteString(end, part) // one of them gives way, and may be this one
	}
	for range 5 { // there is room for 64
		if got := <-answers; got != http.StatusServiceUnavailable {
			t.Errorf("one of the 70 of the same address was answered %d, want 503", got)
		}
	}
	slow.Close()
	if got := <-slowAnswer; got != http.StatusUnauthorized {
		t.Errorf("the slow one of another address was answered %d, want 401: it was read", got)
	}
	for _, end := range ends {
		end.Close()
	}
	for range cap(answers) - 5 {
		<-answers
	}
}

func TestABodyBelowTheLeastRateIsCutOffAndOneAboveIsNot(t *testing.T) {
	in, url, client := heldHouse(t)
	in.held.grace = 200 * time.Millisecond
	if end, answer := begun(t, client, url, "{", 1000); <-answer != http.StatusRequestTimeout {
		t.Error("a body that stands still was not cut off")
	} else {
		end.Close()
	}
	// 128 KiB are worth 4 s more.
	began := time.Now()
	end, answer := begun(t, client, url, strings.Repeat(" ", 128<<10), -1)
	select {
	case got := <-answer:
		t.Errorf("a body that comes fast was answered %d after %s", got, time.Since(began))
	case <-time.After(time.Second):
	}
	end.Close()
	if got := <-answer; got != http.StatusUnauthorized {
		t.Errorf("it was answered %d, want 401", got)
	}
}
