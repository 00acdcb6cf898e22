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

// Each delivery reaches the servers sprayed times. The copies arrive up to lateBy late. One in lateFirst of the first copies
// is late as well.
const (
	sprayed   = 5
	lateBy    = 4 * time.Second
	lateFirst = 20
)

// spray is a proxy between GitHub and the servers. It sends each delivery to several random servers. GitHub gets the first
// server's answer.
type spray struct {
	nodes  func() *node // returns a random node
	n      func(below int) int
	client http.Client
	late   atomic.Int64 // the number of copies that are not sent yet
	copies atomic.Int64 // the number of accepted copies, without the first copy of each delivery
}

// sprayed starts a spray and directs GitHub's webhooks to it.
func (s *soak) sprayed() {
	s.spray = &spray{nodes: func() *node { return s.nodes[s.n(len(s.nodes))] }, n: s.n, client: http.Client{Timeout: patience}}
	server := httptest.NewServer(s.spray)
	s.t.Cleanup(server.Close)
	s.World.SetWebhookURL(server.URL)
}

func (p *spray) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // GitHub closed the connection
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

// send sends one copy to a server, and returns 502 if that server is down.
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

// orderly reports whether SOAK_SIGNAL asks for SIGTERM instead of kills.
func orderly(t *testing.T, signal string) bool {
	t.Helper()
	if signal != "" && signal != "TERM" && signal != "KILL" {
		t.Fatalf("SOAK_SIGNAL is %q; use TERM or KILL", signal)
	}
	return signal == "TERM"
}

// judge checks on GitHub that every comment had its effect. Each kind of question has one answer; if there were more than
// ten questions, at least one kind must have its answer. If an issue has a command, a comment reports how its run ended.
// Each of Pawl's pull requests has a check run on its head commit.
func (s *soak) judge() {
	s.t.Helper()
	world := s.World
	for _, repo := range s.repos {
		heads := map[string]bool{}
		for _, run := range world.CheckRuns(repo) {
			heads[run.SHA] = true
		}
		for _, issue := range world.Issues(repo) {
			asked, questions, answers, commands, report := map[string]bool{}, 0, 0, 0, ""
			for _, c := range world.Comments(repo, issue.Number) {
				switch words, _, _ := strings.Cut(c.Body, "\n"); {
				case c.ViaApp && strings.Contains(c.Body, "<!-- pawl:status "):
					report = c.Body
				case c.ViaApp && strings.Contains(c.Body, "<!-- pawl:answer "):
					answers++
				case c.ViaApp:
				case words == "/pawl status" || words == "/pawl why":
					asked[words] = true
					questions++
				case strings.HasPrefix(words, "/pawl "):
					commands++
				}
			}
			if answers > len(asked) || answers < len(asked) && (questions <= 10 || answers == 0) {
				s.t.Errorf("%s#%d: the questions %v have %d answers", repo, issue.Number, asked, answers)
			}
			if commands > 0 && (report == "" || strings.Contains(report, "**Running") || strings.Contains(report, " is running on ") || strings.Contains(report, "**Waiting")) {
				s.t.Errorf("%s#%d: %d commands, reported as %.200q", repo, issue.Number, commands, report)
			}
			if p := issue.Pull; p != nil && !heads[p.HeadSHA] {
				s.t.Errorf("%s#%d: the head %s of %s has no check run", repo, issue.Number, p.HeadSHA, p.Head)
			}
		}
	}
}
