package solver_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// The App and its bot user at the test's GitHub.
const (
	appID = 7
	botID = 70
)

// github is the part of GitHub that a step needs, in memory and without git; internal/fakegithub has the rest. It
// accepts every well-formed request, even twice, and counts them.
type github struct {
	mu       sync.Mutex
	id       int
	comments []*comment
	checks   []*checkRun
	pulls    []*pullRequest
	unknown  []string // unknown requests
}

type comment struct {
	id, number int
	body       string
}

type checkRun struct {
	ID         int    `json:"id"`
	Name       string `json:"name"`
	HeadSHA    string `json:"head_sha"`
	ExternalID string `json:"external_id"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion,omitempty"`
	App        struct {
		ID int `json:"id"`
	} `json:"app"`
}

type pullRequest struct {
	number     int
	head, base string
	open       bool
	body       string
}

// object is a JSON object.
type object map[string]any

// wish is a request's content.
type wish struct {
	route string // its numbers replaced by *
	part  []string
	query string
	Body  string `json:"body"`
	Head  string `json:"head"`
	Base  string `json:"base"`
	checkRun
}

// at returns the number in a part of the path.
func (in wish) at(i int) int {
	n, _ := strconv.Atoi(in.part[i])
	return n
}

// serve answers one request.
func (g *github) serve(method, path, query string, body []byte) (status int, answer any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	in := wish{route: method + " " + variable.ReplaceAllString(path, "/*"), part: strings.Split(strings.TrimPrefix(path, "/"), "/"), query: query}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &in); err != nil {
			return 400, object{"message": err.Error()}
		}
	}
	g.id++
	for _, serve := range []func(wish) (int, any){g.serveApp, g.serveComments, g.serveChecks, g.servePulls} {
		if status, answer := serve(in); status != 0 {
			return status, answer
		}
	}
	g.unknown = append(g.unknown, in.route)
	return 404, object{"message": "Not Found"}
}

func (g *github) serveApp(in wish) (int, any) {
	switch in.route {
	case "GET /app":
		return 200, object{"id": appID, "slug": "pawl", "name": "Pawl"}
	case "GET /users/pawl%5Bbot%5D", "GET /users/pawl[bot]":
		return 200, object{"id": botID, "login": "pawl[bot]", "type": "Bot"}
	case "GET /app/installations":
		return 200, []object{{"id": 5}}
	case "POST /app/installations/*/access_tokens":
		return 201, object{"token": fmt.Sprint("token-", g.id), "expires_at": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}
	case "GET /repos/o/r/collaborators/ann/permission":
		return 200, object{"permission": "write", "role_name": "write"}
	case "GET /repos/o/r":
		return 200, object{"id": 1, "name": "r", "full_name": "o/r", "default_branch": "main"}
	}
	return 0, nil
}

func (g *github) serveComments(in wish) (int, any) {
	switch in.route {
	case "POST /repos/o/r/issues/*/reactions", "POST /repos/o/r/issues/comments/*/reactions":
		return 200, object{"id": g.id, "content": "eyes"}
	case "POST /graphql": // there are no comments by users, and a pull request is ready at once
		return 200, object{"data": object{"repository": object{"found": object{"comments": object{"totalCount": 0, "nodes": []object{}}}}}}
	case "GET /repos/o/r/issues/*/comments":
		list := []object{}
		for _, c := range g.comments {
			if c.number == in.at(4) {
				list = append(list, c.json())
			}
		}
		return 200, list
	case "POST /repos/o/r/issues/*/comments":
		c := &comment{g.id, in.at(4), in.Body}
		g.comments = append(g.comments, c)
		return 201, c.json()
	case "PATCH /repos/o/r/issues/comments/*":
		for _, c := range g.comments {
			if c.id == in.at(5) {
				c.body = in.Body
				return 200, c.json()
			}
		}
		return 404, object{"message": "Not Found"}
	}
	return 0, nil
}

// fails adds another App's failed check on a commit.
func (g *github) fails(sha, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.id++
	c := &checkRun{ID: g.id, Name: name, HeadSHA: sha, Status: "completed", Conclusion: "failure"}
	c.App.ID = 99
	g.checks = append(g.checks, c)
}

func (g *github) serveChecks(in wish) (int, any) {
	switch {
	case in.route == "POST /repos/o/r/check-runs":
		c := in.checkRun
		c.ID, c.App.ID = g.id, appID
		g.checks = append(g.checks, &c)
		return 201, c
	case in.route == "PATCH /repos/o/r/check-runs/*":
		for _, c := range g.checks {
			if c.ID == in.at(4) {
				c.Status, c.Conclusion = in.Status, in.Conclusion
				return 200, c
			}
		}
		return 404, object{"message": "Not Found"}
	case in.route == "GET /repos/o/r/check-runs/*/annotations":
		return 200, []object{}
	case len(in.part) == 6 && in.part[3] == "commits" && in.part[5] == "check-runs":
		list := []*checkRun{}
		for _, c := range g.checks {
			if c.HeadSHA == in.part[4] {
				list = append(list, c)
			}
		}
		return 200, object{"total_count": len(list), "check_runs": list}
	}
	return 0, nil
}

func (g *github) servePulls(in wish) (int, any) {
	switch in.route {
	case "GET /repos/o/r/pulls":
		list := []object{}
		for _, p := range g.pulls {
			if p.open && strings.Contains(in.query, "head="+url.QueryEscape("o:"+p.head)) {
				list = append(list, p.json())
			}
		}
		return 200, list
	case "POST /repos/o/r/pulls":
		if slices.ContainsFunc(g.pulls, func(p *pullRequest) bool { return p.open && p.head == in.Head }) {
			return 422, object{"message": "Validation Failed", "errors": []object{{"message": "A pull request already exists for o:" + in.Head + "."}}}
		}
		p := &pullRequest{1000 + g.id, in.Head, in.Base, true, in.Body}
		g.pulls = append(g.pulls, p)
		return 201, p.json()
	case "GET /repos/o/r/pulls/*", "GET /repos/o/r/issues/*", "PATCH /repos/o/r/issues/*", "POST /repos/o/r/pulls/*/requested_reviewers":
		p := g.pull(in.at(4))
		if p == nil {
			return 404, object{"message": "Not Found"}
		}
		if strings.HasPrefix(in.route, "PATCH") {
			p.body = in.Body
		}
		return 200, p.json()
	}
	return 0, nil
}

// variable matches a number in a path.
var variable = regexp.MustCompile(`/[0-9]+`)

func (c *comment) json() object {
	return object{"id": c.id, "body": c.body, "html_url": fmt.Sprint("http://github.test/c/", c.id), "user": object{"id": botID, "login": "pawl[bot]", "type": "Bot"},
		"performed_via_github_app": object{"id": appID}}
}

func (p *pullRequest) json() object {
	state := map[bool]string{true: "open", false: "closed"}[p.open]
	repo := object{"id": 1, "full_name": "o/r"}
	return object{"number": p.number, "state": state, "draft": true, "node_id": fmt.Sprint("PR_", p.number), "body": p.body, "html_url": fmt.Sprint("http://github.test/p/", p.number),
		"head": object{"ref": p.head, "repo": repo}, "base": object{"ref": p.base, "repo": repo}}
}

// pull returns the pull request with a number, or nil.
func (g *github) pull(number int) *pullRequest {
	for _, p := range g.pulls {
		if p.number == number {
			return p
		}
	}
	return nil
}

// mark matches the marker in Pawl's own comments.
var mark = regexp.MustCompile(`<!-- pawl:[^>]*-->`)

// twice lists duplicates that must not exist.
func (g *github) twice() (found []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen := map[string]int{}
	for _, c := range g.comments {
		seen[fmt.Sprintf("comment on #%d with %s", c.number, mark.FindString(c.body))]++
	}
	for _, c := range g.checks {
		if c.App.ID == appID {
			seen[fmt.Sprintf("check run %s of %s on %s", c.Name, c.ExternalID, c.HeadSHA)]++
		}
	}
	for _, p := range g.pulls {
		if p.open {
			seen["open pull request from "+p.head]++
		}
	}
	for what, n := range seen {
		if n > 1 {
			found = append(found, fmt.Sprintf("%d × %s", n, what))
		}
	}
	for _, what := range g.unknown {
		found = append(found, "unknown request "+what)
	}
	return found
}

// respond returns an answer with a status and a value.
func respond(req *http.Request, status int, header http.Header, answer any) *http.Response {
	body, _ := json.Marshal(answer)
	if header == nil {
		header = http.Header{}
	}
	header.Set("Content-Type", "application/json")
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: req}
}
