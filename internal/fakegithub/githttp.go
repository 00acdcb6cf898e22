package fakegithub

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"strings"
)

// maxPack bounds a git request body; the fake is for small repositories.
const maxPack = 256 << 20

// gitCall is one request of git's smart HTTP protocol.
type gitCall struct {
	repo  *repository
	who   caller
	rest  string // info/refs, git-upload-pack or git-receive-pack
	write bool
}

func (s *Server) serveGit(w http.ResponseWriter, r *http.Request) {
	full, rest, isGit := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), ".git/")
	entry := Request{Method: r.Method, Path: r.URL.Path, Query: r.URL.RawQuery, At: s.now(), Caller: "anonymous"}
	service := rest == "git-upload-pack" || rest == "git-receive-pack"
	if isGit && ((rest == "info/refs" && r.Method == http.MethodGet) || (service && r.Method == http.MethodPost)) {
		entry.Route = r.Method + " /{owner}/{repo}.git/" + rest
	}
	fault := s.faultList.take(r.Method, entry.Path, entry.Route)
	if !fault.before(r.Context()) {
		s.requestLog.add(entry)
		panic(http.ErrAbortHandler)
	}
	out := &gitWriter{ResponseWriter: w, mute: fault.AbortAfter, status: http.StatusOK}
	if scripted := fault.reply(); scripted != nil {
		out.status = scripted.status
		scripted.write(out)
	} else if entry.Route == "" {
		http.Error(out, "Not Found", http.StatusNotFound)
	} else {
		call := gitCall{rest: rest, write: rest == "git-receive-pack" || r.URL.Query().Get("service") == "git-receive-pack"}
		git := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.answerGit(w, r, call, full, &entry) })
		if fault.Answer != nil {
			fault.Answer(out, r, git)
		} else {
			git(out, r)
		}
	}
	if fault.AbortAfter {
		s.requestLog.add(entry)
		panic(http.ErrAbortHandler)
	}
	entry.Status = out.status
	s.requestLog.add(entry)
}

// answerGit checks credentials and access, then lets git-http-backend work.
func (s *Server) answerGit(w http.ResponseWriter, r *http.Request, g gitCall, full string, entry *Request) {
	s.world.mu.Lock()
	who, refused := s.authenticate(r)
	entry.Caller = who.name()
	g.who = who
	g.repo = s.world.repos[strings.ToLower(full)]
	status, message, location := s.admitGit(g, refused, full, r)
	s.world.mu.Unlock()
	switch {
	case location != "":
		http.Redirect(w, r, location, status)
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", `Basic realm="GitHub"`)
		http.Error(w, message, status)
	case status != http.StatusOK:
		http.Error(w, message, status)
	case g.write && g.rest == "git-receive-pack":
		s.receive(w, r, g, entry)
	default:
		s.runBackend(w, r, g)
	}
}

// admitGit gives the answer of the access check, 200 when git may go on.
func (s *Server) admitGit(g gitCall, refused *reply, full string, r *http.Request) (status int, message, location string) {
	if refused != nil || g.who.token == nil {
		return http.StatusUnauthorized, "remote: Invalid username or token. Password authentication is not supported for Git operations.", ""
	}
	c := &call{base: s.base, r: r, who: g.who, repo: g.repo}
	if g.repo == nil || g.repo.deleted || !c.sees(g.repo) || !c.has("contents:read") {
		return http.StatusNotFound, "remote: Repository not found.", ""
	}
	if g.write && !c.has("contents:write") {
		if g.who.token.user == nil {
			return http.StatusForbidden, "remote: Write access to repository not granted.", ""
		}
		return http.StatusForbidden, fmt.Sprintf("remote: Permission to %s.git denied to %s.", full, g.who.account().login), ""
	}
	if !strings.EqualFold(full, g.repo.fullName()) {
		return http.StatusMovedPermanently, "", s.base + "/" + g.repo.fullName() + ".git/" + g.rest + "?" + r.URL.RawQuery
	}
	return http.StatusOK, "", ""
}

// receive lets git take the push, then tells the world what moved. The push is
// finished even when the client goes away, as it is at GitHub.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, g gitCall, entry *Request) {
	g.repo.pushing.Lock()
	defer g.repo.pushing.Unlock()
	ctx := context.WithoutCancel(r.Context())
	s.runBackend(w, r.WithContext(ctx), g)
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if err := s.pushes.refsMoved(ctx, g.repo, g.who.account()); err != nil {
		entry.Body = "after the push: " + err.Error()
	}
}

func (s *Server) runBackend(w http.ResponseWriter, r *http.Request, g gitCall) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxPack)) // net/http/cgi takes no chunked bodies
	if err != nil {
		http.Error(w, "read the pack: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	inner := r.Clone(r.Context())
	inner.Body, inner.ContentLength, inner.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	inner.URL.Path = fmt.Sprintf("/%d.git/%s", g.repo.id, g.rest)
	inner.Header.Del("Authorization")
	env := append(g.repo.git.environ(), "GIT_PROJECT_ROOT="+s.dir, "GIT_HTTP_EXPORT_ALL=1")
	if g.who.token != nil {
		env = append(env, "REMOTE_USER="+g.who.account().login)
	}
	if protocol := r.Header.Get("Git-Protocol"); strings.HasPrefix(protocol, "version=") {
		env = append(env, "GIT_PROTOCOL="+protocol)
	}
	if g.who.via() != nil && rank(g.who.token.permissions["workflows"]) < rank("write") {
		env = append(env, "FAKEGITHUB_WORKFLOWS=deny")
	}
	(&cgi.Handler{Path: s.backend, Root: "/", Dir: s.dir, Env: env, Stderr: io.Discard}).ServeHTTP(w, inner)
}

// gitWriter notes the status and can swallow the answer.
type gitWriter struct {
	http.ResponseWriter
	mute   bool
	status int
}

// WriteHeader notes the status.
func (w *gitWriter) WriteHeader(status int) {
	w.status = status
	if !w.mute {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write passes the body on unless the answer is to be lost.
func (w *gitWriter) Write(b []byte) (int, error) {
	if w.mute {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
