package fakegithub

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// maxBody limits a REST request; GitHub's texts have at most 65,536 characters.
const maxBody = 4 << 20

// route is one documented operation. Its name is an http.ServeMux pattern: "GET /repos/{owner}/{repo}".
type route struct {
	name       string
	access     access
	permission string // alternatives separated by |
	handle     func(*call) *reply
}

func (s *Server) routeTable() []route {
	const repo = " /repos/{owner}/{repo}"
	const talk = "issues:write|pull_requests:write"
	const listen = "issues:read|pull_requests:read"
	return []route{
		{"GET /app", asApp, "", s.getApp},
		{"GET /app/installations", asApp, "", s.listInstallations},
		{"POST /app/installations/{id}/access_tokens", asApp, "", s.createToken},
		{"GET /app/hook/config", asApp, "", func(*call) *reply { return ok(s.webhooks.hookConfig()) }},
		{"GET /app/hook/deliveries", asApp, "", s.listDeliveries},
		{"GET /app/hook/deliveries/{id}", asApp, "", s.getDelivery},
		{"POST /app-manifests/{code}/conversions", anyone, "", s.convertManifest},
		{"GET /meta", anyone, "", s.getMeta},
		{"GET /user", asToken, "", s.getSelf},
		{"GET /users/{login}", anyone, "", s.getUser},
		{"GET" + repo, asToken, "metadata:read", s.getRepo},
		{"GET" + repo + "/installation", asApp, "", s.getInstallation},
		{"GET" + repo + "/collaborators/{login}/permission", asToken, "metadata:read", s.getPermission},
		{"GET" + repo + "/issues", asToken, listen, s.listIssues},
		{"POST" + repo + "/issues", asToken, talk, s.createIssue},
		{"GET" + repo + "/issues/{number}", asToken, listen, ofThread(s.getIssue)},
		{"PATCH" + repo + "/issues/{number}", asToken, talk, ofThread(s.updateIssue)},
		{"GET" + repo + "/issues/{number}/comments", asToken, listen, ofThread(s.listComments)},
		{"GET" + repo + "/issues/{number}/events", asToken, listen, ofThread(s.listEvents)},
		{"POST" + repo + "/issues/{number}/comments", asToken, talk, ofThread(s.createComment)},
		{"PATCH" + repo + "/issues/comments/{id}", asToken, talk, ofComment(s.updateComment)},
		{"POST" + repo + "/issues/{number}/reactions", asToken, talk, ofThread(s.reactToIssue)},
		{"GET" + repo + "/issues/comments/{id}/reactions", asToken, listen, ofComment(s.listReactions)},
		{"POST" + repo + "/issues/comments/{id}/reactions", asToken, talk, ofComment(s.reactToComment)},
		{"POST" + repo + "/pulls/comments/{id}/reactions", asToken, "pull_requests:write", s.reactToReviewComment},
		{"GET" + repo + "/pulls", asToken, "pull_requests:read", s.listPulls},
		{"POST" + repo + "/pulls", asToken, "pull_requests:write", s.createPull},
		{"GET" + repo + "/pulls/{number}", asToken, "pull_requests:read", ofPull(s.getPull)},
		{"POST" + repo + "/pulls/{number}/comments/{id}/replies", asToken, "pull_requests:write", ofPull(s.replyToReviewComment)},
		{"POST" + repo + "/pulls/{number}/requested_reviewers", asToken, "pull_requests:write", ofPull(s.requestReviewers)},
		{"GET" + repo + "/pulls/{number}/reviews", asToken, "pull_requests:read", ofPull(s.listReviews)},
		{"GET" + repo + "/pulls/{number}/comments", asToken, "pull_requests:read", ofPull(s.listReviewComments)},
		{"POST /graphql", asToken, "", s.readers.graph},
		{"POST" + repo + "/check-runs", asToken, "checks:write", s.createCheckRun},
		{"GET" + repo + "/check-runs/{id}/annotations", asToken, "checks:read", ofRun(s.listAnnotations)},
		{"GET" + repo + "/actions/jobs/{id}", asToken, "actions:read", ofRun(s.getJob)},
		{"GET" + repo + "/actions/jobs/{id}/logs", asToken, "actions:read", ofRun(s.getJobLog)},
		{"GET" + repo + "/actions/runs/{id}", asToken, "actions:read", s.ofWorkflowRun(s.getWorkflowRun)},
		{"POST" + repo + "/actions/runs/{id}/rerun-failed-jobs", asToken, "actions:write", s.ofWorkflowRun(s.rerunFailedJobs)},
		{"GET" + repo + "/contents/{path...}", asToken, "contents:read", s.getContents},
		{"GET" + repo + "/compare/{range}", asToken, "contents:read", s.compareCommits},
		{"GET" + repo + "/branches/{branch...}", asToken, "contents:read", s.getBranch},
		{"GET" + repo + "/rules/branches/{branch...}", asToken, "metadata:read", s.getBranchRules},
		{"PATCH" + repo + "/check-runs/{id}", asToken, "checks:write", ofRun(s.updateCheckRun)},
		{"GET" + repo + "/commits/{ref}/pulls", asToken, "pull_requests:read", s.listPullsOfCommit},
		{"GET" + repo + "/commits/{ref}/check-runs", asToken, "checks:read", s.listCheckRuns},
	}
}

// ofThread serves a route of an issue or pull request. Writing needs the permission for that kind of thread.
func ofThread(handle func(*call, *thread) *reply) func(*call) *reply {
	return func(c *call) *reply {
		number, err := strconv.Atoi(c.r.PathValue("number"))
		if err != nil {
			return notFound()
		}
		t, err := c.repo.thread(number)
		if err != nil {
			return notFound()
		}
		if refused := c.mayTouch(t); refused != nil {
			return refused
		}
		return handle(c, t)
	}
}

func ofPull(handle func(*call, *thread) *reply) func(*call) *reply {
	return ofThread(func(c *call, t *thread) *reply {
		if t.pull == nil {
			return notFound()
		}
		return handle(c, t)
	})
}

func ofComment(handle func(*call, *thread, *comment) *reply) func(*call) *reply {
	return func(c *call) *reply {
		t, m := c.repo.comment(c.id())
		if m == nil {
			return notFound()
		}
		if refused := c.mayTouch(t); refused != nil {
			return refused
		}
		return handle(c, t, m)
	}
}

func ofRun(handle func(*call, *checkRun) *reply) func(*call) *reply {
	return func(c *call) *reply {
		run := c.repo.run(c.id())
		if run == nil {
			return notFound()
		}
		return handle(c, run)
	}
}

// rest returns the REST API. "/repositories/7/…" is served like the repository's current name.
func (s *Server) rest() http.Handler {
	mux := http.NewServeMux()
	for _, rt := range s.routeTable() {
		mux.HandleFunc(rt.name, func(w http.ResponseWriter, r *http.Request) { s.serveREST(w, r, rt) })
	}
	byID := func(w http.ResponseWriter, r *http.Request) {
		named := r.Clone(r.Context())
		named.URL.Path, named.URL.RawPath = s.current(r.PathValue("id"))+strings.TrimSuffix("/"+r.PathValue("rest"), "/"), ""
		mux.ServeHTTP(w, named)
	}
	mux.HandleFunc("/repositories/{id}", byID)
	mux.HandleFunc("/repositories/{id}/{rest...}", byID)
	unknown := route{handle: func(*call) *reply { return notFound() }}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.serveREST(w, r, unknown) })
	return http.StripPrefix("/api/v3", mux)
}

func (s *Server) current(id string) string {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for _, r := range s.world.repos {
		if fmtID(r.id) == id {
			return "/repos/" + r.fullName()
		}
	}
	return "/repos/none/none"
}

type call struct {
	base string // without a final slash
	r    *http.Request
	body []byte
	who  caller
	repo *repository // set if the route names one
}

func (s *Server) serveREST(w http.ResponseWriter, r *http.Request, rt route) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	path := r.URL.EscapedPath()
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat)) // net/http would send the machine's time
	entry := Request{Method: r.Method, Path: path, Query: r.URL.RawQuery, Route: rt.name, At: s.now(), Body: cut(body), Caller: "anonymous"}
	visit := s.limitChecks.arrive(r, path, s.now, func() (caller, *reply) { return s.identify(r) })
	defer visit.leave(nil)
	fault := s.faultList.take(r.Method, path, entry.Route)
	if !fault.before(r.Context()) {
		s.requestLog.add(entry)
		panic(http.ErrAbortHandler)
	}
	rep := visit.refusal()
	if rep == nil {
		rep = fault.reply()
	}
	if rep == nil && err != nil {
		rep = problem(http.StatusRequestEntityTooLarge, "Payload too large")
	}
	process := func(r *http.Request) *reply { return s.answer(&call{base: s.base, r: r, body: body}, rt, &entry) }
	if rep == nil && fault.Answer != nil {
		s.requestLog.add(entry)
		fault.Answer(w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { process(r).write(w) }))
		return
	}
	if rep == nil {
		rep = process(r)
	}
	if fault.AbortAfter {
		s.requestLog.add(entry)
		panic(http.ErrAbortHandler)
	}
	entry.Status = rep.status
	s.requestLog.add(entry)
	visit.leave(rep)
	rep.header.Set("X-GitHub-Request-Id", requestID())
	rep.write(w)
}

func (s *Server) identify(r *http.Request) (caller, *reply) {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	return s.authenticate(r)
}

// answer handles credentials, limits, the repository, permissions, the handler, and the conditional GET.
func (s *Server) answer(c *call, rt route, entry *Request) *reply {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	who, refused := s.authenticate(c.r)
	if refused != nil {
		return refused
	}
	c.who = who
	entry.Caller = who.name()
	charge, refused := s.quotas.charge(who.name(), s.now())
	if refused != nil {
		return charge.mark(refused)
	}
	rep := s.dispatch(c, rt)
	if rt.permission != "" {
		rep.header.Set("X-Accepted-GitHub-Permissions", strings.NewReplacer(":", "=", "|", "; ").Replace(rt.permission))
	}
	if c.r.Method == http.MethodGet && rep.status == http.StatusOK {
		sum := sha256.Sum256(append(rep.bytes(), entry.Caller...))
		tag := `W/"` + hex.EncodeToString(sum[:]) + `"`
		if c.r.Header.Get("If-None-Match") == tag {
			charge.refund() // "a 304 does not count against your primary rate limit"
			rep = &reply{status: http.StatusNotModified, header: http.Header{}}
		}
		rep.header.Set("Vary", "Accept, Authorization, Cookie, X-GitHub-OTP")
		rep.header.Set("ETag", tag)
		rep.header.Set("Cache-Control", "private, max-age=60, s-maxage=60")
	}
	return charge.mark(rep)
}

func (s *Server) dispatch(c *call, rt route) *reply {
	if owner := c.r.PathValue("owner"); owner != "" {
		full := owner + "/" + c.r.PathValue("repo")
		r := s.world.repos[strings.ToLower(full)]
		if r == nil || r.deleted {
			return notFound()
		}
		c.repo = r
		if !strings.EqualFold(r.fullName(), full) {
			return s.moved(c)
		}
	}
	if refused := c.admit(rt); refused != nil {
		return refused
	}
	return rt.handle(c)
}

// moved redirects a former name to the address with the repository's id: 301 for reads, else 307.
func (s *Server) moved(c *call) *reply {
	target := fmt.Sprintf("%srepositories/%d", s.APIURL(), c.repo.id)
	if parts := strings.SplitN(c.r.URL.EscapedPath(), "/", 5); len(parts) == 5 { // "", repos, owner, repo, rest
		target += "/" + parts[4]
	}
	if c.r.URL.RawQuery != "" {
		target += "?" + c.r.URL.RawQuery
	}
	rep := &reply{status: http.StatusMovedPermanently, header: http.Header{"Location": {target}},
		body: obj{"message": "Moved Permanently", "url": target, "documentation_url": docs}}
	if c.r.Method != http.MethodGet {
		rep.status = http.StatusTemporaryRedirect
	}
	return rep
}

// decode reads the JSON body: bad JSON is a 400, a value of the wrong type a 422.
func (c *call) decode(into any) *reply {
	if len(c.body) == 0 {
		return nil
	}
	err := json.Unmarshal(c.body, into)
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return invalid(fmt.Sprintf("For 'properties/%s', %s is not %s.", kind.Field, kind.Value, jsonKind(kind.Type)))
	case err != nil:
		return problem(http.StatusBadRequest, "Problems parsing JSON")
	}
	return nil
}

// jsonKind returns GitHub's name for a type.
func jsonKind(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "a boolean"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a string"
}

func (c *call) id() int64 {
	n, err := strconv.ParseInt(c.r.PathValue("id"), 10, 64)
	if err != nil {
		return 0 // no such id
	}
	return n
}

func (c *call) query(name, otherwise string) string {
	if v := c.r.URL.Query().Get(name); v != "" {
		return v
	}
	return otherwise
}

func (c *call) context() context.Context { return c.r.Context() }

func stamp(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return t.UTC().Format(time.RFC3339)
}
