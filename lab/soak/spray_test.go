package soak

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// How deliveries reach the servers of the soak: so many times each, the copies late
// by up to lateBy, and one first in lateFirst, too.
const (
	sprayed   = 5
	lateBy    = 4 * time.Second
	lateFirst = 20
)

// spray stands between GitHub and the servers: it gives each delivery to servers by
// chance. GitHub gets the answer to the first.
type spray struct {
	nodes  func() *node // one of them
	n      func(below int) int
	client http.Client
	late   atomic.Int64 // copies that are still to come
	copies atomic.Int64 // that a server accepted, beside the first of each
}

// sprayed puts it there.
func (s *soak) sprayed() {
	s.spray = &spray{nodes: func() *node { return s.nodes[s.n(len(s.nodes))] }, n: s.n, client: http.Client{Timeout: patience}}
	server := httptest.NewServer(s.spray)
	s.t.Cleanup(server.Close)
	s.World.SetWebhookURL(server.URL)
}

func (p *spray) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // GitHub went away
	}
	for range sprayed - 1 {
		p.late.Add(1)
		time.AfterFunc(p.later(), func() {
			defer p.late.Add(-1)
			if p.send(r.Header, body)/100 == 2 {
				p.copies.Add(1)
			}
		})
	}
	if p.n(lateFirst) == 0 {
		time.Sleep(p.later())
	}
	w.WriteHeader(p.send(r.Header, body))
}

func (p *spray) later() time.Duration { return time.Duration(p.n(int(lateBy))) }

// send gives one copy to a server. One that is dead is a bad gateway.
func (p *spray) send(header http.Header, body []byte) int {
	req, err := http.NewRequest(http.MethodPost, "http://"+p.nodes().Addr+"/api/github/hook", bytes.NewReader(body))
	if err != nil {
		return http.StatusBadGateway
	}
	req.Header = header.Clone()
	resp, err := p.client.Do(req)
	if err != nil {
		return http.StatusBadGateway
	}
	resp.Body.Close()
	return resp.StatusCode
}

// A soak of which every restart is orderly; see soakSize.
func orderly(t *testing.T, signal string) bool {
	t.Helper()
	if signal != "" && signal != "TERM" && signal != "KILL" {
		t.Fatalf("SOAK_SIGNAL is %q; use TERM or KILL", signal)
	}
	return signal == "TERM"
}

// judge checks at GitHub alone that nobody's words were left without an effect: each
// kind of question has one answer (beyond ten questions, one kind of them), each order a
// comment that tells how its run ended, and each pull request of Pawl a check run on its
// head.
func (s *soak) judge() {
	s.t.Helper()
	world := s.World
	for _, repo := range s.repos {
		heads := map[string]bool{}
		for _, run := range world.CheckRuns(repo) {
			heads[run.SHA] = true
		}
		for _, issue := range world.Issues(repo) {
			asked, questions, answers, orders, told := map[string]bool{}, 0, 0, 0, ""
			for _, c := range world.Comments(repo, issue.Number) {
				switch words, _, _ := strings.Cut(c.Body, "\n"); {
				case c.ViaApp && strings.Contains(c.Body, "<!-- pawl:status "):
					told = c.Body
				case c.ViaApp && strings.Contains(c.Body, "<!-- pawl:answer "):
					answers++
				case c.ViaApp:
				case words == "/pawl status" || words == "/pawl why":
					asked[words] = true
					questions++
				case strings.HasPrefix(words, "/pawl "):
					orders++
				}
			}
			if answers > len(asked) || answers < len(asked) && (questions <= 10 || answers == 0) {
				s.t.Errorf("%s#%d: the questions %v have %d answers", repo, issue.Number, asked, answers)
			}
			if orders > 0 && (told == "" || strings.Contains(told, "**Running") || strings.Contains(told, " is running on ") || strings.Contains(told, "**Waiting")) {
				s.t.Errorf("%s#%d: %d orders, of which a comment tells %.200q", repo, issue.Number, orders, told)
			}
			if p := issue.Pull; p != nil && !heads[p.HeadSHA] {
				s.t.Errorf("%s#%d: the head %s of %s has no check run", repo, issue.Number, p.HeadSHA, p.Head)
			}
		}
	}
}
