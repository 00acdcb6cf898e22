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

// maxBody bounds a REST request; GitHub's own texts end at 65,536 characters.
const maxBody = 4 << 20

// call is one REST request on its way through a handler.
type call struct {
	r      *http.Request
	params map[string]string
	body   []byte
	who    caller
	repo   *repository // set when the route names one
}

// ServeHTTP answers REST below /api/v3, GraphQL with an error, the form that
// makes an App from a manifest, and everything else as git.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.begin() {
		panic(http.ErrAbortHandler)
	}
	defer s.inFlight.Done()
	defer s.changed.ring()
	path, isREST := strings.CutPrefix(r.URL.EscapedPath(), "/api/v3")
	switch {
	case isREST:
		s.serveREST(w, r, path)
	case r.URL.Path == "/api/graphql":
		(&reply{status: http.StatusOK, body: obj{"data": nil, "errors": []obj{{"type": "NOT_IMPLEMENTED",
			"message": "this GitHub offers no GraphQL, use the REST API"}}}}).write(w)
	case s.servesManifest(w, r):
	default:
		s.serveGit(w, r)
	}
}

func (s *Server) serveREST(w http.ResponseWriter, r *http.Request, path string) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	entry := Request{Method: r.Method, Path: path, Query: r.URL.RawQuery, At: s.now(), Body: cut(body), Caller: "anonymous"}
	rt, params := match(s.routes, r.Method, s.current(path))
	if rt != nil {
		entry.Route = rt.name
	}
	visit := s.arrive(r, path)
	defer visit.leave(nil)
	fault := s.faults.take(r.Method, path, entry.Route)
	if !fault.before(r.Context()) {
		s.requests.add(entry)
		panic(http.ErrAbortHandler)
	}
	rep := visit.refusal()
	if rep == nil {
		rep = fault.reply()
	}
	if rep == nil && err != nil {
		rep = problem(http.StatusRequestEntityTooLarge, "Payload too large")
	}
	if rep == nil {
		rep = s.answer(&call{r: r, params: params, body: body}, rt, &entry)
	}
	if fault.AbortAfter {
		s.requests.add(entry)
		panic(http.ErrAbortHandler)
	}
	entry.Status = rep.status
	s.requests.add(entry)
	visit.leave(rep)
	rep.header.Set("X-GitHub-Request-Id", requestID())
	rep.write(w)
}

// answer does everything between a parsed request and its reply: credentials,
// limits, the repository, permissions, the handler, and the conditional GET.
func (s *Server) answer(c *call, rt *route, entry *Request) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	who, refused := s.authenticate(c.r)
	if refused != nil {
		return refused
	}
	c.who = who
	entry.Caller = who.name()
	charge, refused := s.quotas.charge(who.name(), who.described(), c.r.Method, s.rateLimit, s.now())
	if refused != nil {
		return charge.mark(refused)
	}
	rep := s.dispatch(c, rt)
	if rt != nil && rt.permission != "" {
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

func (s *Server) dispatch(c *call, rt *route) *reply {
	if rt == nil {
		return notFound()
	}
	if owner, ok := c.params["owner"]; ok {
		r := s.world.repos[strings.ToLower(owner+"/"+c.params["repo"])]
		if r == nil || r.deleted {
			return notFound()
		}
		c.repo = r
		if !strings.EqualFold(r.fullName(), owner+"/"+c.params["repo"]) {
			return s.moved(c)
		}
	}
	if refused := c.admit(rt); refused != nil {
		return refused
	}
	return rt.handle(s, c)
}

// moved answers for a former name: 301 for reads, 307 for the rest, to the
// address by id.
func (s *Server) moved(c *call) *reply {
	rest := strings.SplitN(c.r.URL.EscapedPath(), "/", 7) // "", api, v3, repos, owner, repo, rest
	target := fmt.Sprintf("%srepositories/%d", s.APIURL(), c.repo.id)
	if len(rest) == 7 {
		target += "/" + rest[6]
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

// current turns /repositories/{id}/… into the path by name.
func (s *Server) current(path string) string {
	rest, ok := strings.CutPrefix(path, "/repositories/")
	if !ok {
		return path
	}
	id, rest, more := strings.Cut(rest, "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.world.repos {
		if strconv.FormatInt(r.id, 10) == id {
			path = "/repos/" + r.fullName()
			if more {
				path += "/" + rest
			}
			return path
		}
	}
	return path
}

// decode reads the JSON body as GitHub does: bad JSON is a 400, a value of the
// wrong type a 422.
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

// jsonKind is how GitHub names the type that it wanted.
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
	n, err := strconv.ParseInt(c.params["id"], 10, 64)
	if err != nil {
		return 0 // too long to be an id of ours
	}
	return n
}

// thread finds the issue or pull request that the route names, nil if none.
func (c *call) thread() *thread {
	n, err := strconv.Atoi(c.params["number"])
	if err != nil {
		return nil
	}
	t, err := c.repo.thread(n)
	if err != nil {
		return nil
	}
	return t
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
