package fakegithub

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// maxPack limits a git request's body in bytes.
const maxPack = 256 << 20

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

// answerGit checks credentials and access, then runs git.
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
		g.serveService(w, r)
	}
}

// admitGit returns the answer of the access check; 200 lets git run.
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

// receive runs the push, then applies the moved refs. Like GitHub, it finishes the push after the client has gone.
func (s *Server) receive(w http.ResponseWriter, r *http.Request, g gitCall, entry *Request) {
	g.repo.pushing.Lock()
	defer g.repo.pushing.Unlock()
	ctx := context.WithoutCancel(r.Context())
	g.serveService(w, r.WithContext(ctx))
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	if err := s.pushes.refsMoved(ctx, g.repo, g.who.account()); err != nil {
		entry.Body = "after the push: " + err.Error()
	}
}

// serveService answers one request like git http-backend, without that process.
func (g gitCall) serveService(w http.ResponseWriter, r *http.Request) {
	service, kind := g.rest, "result"
	if g.rest == "info/refs" {
		service, kind = r.URL.Query().Get("service"), "advertisement"
	}
	command := map[string]string{"git-upload-pack": "upload-pack", "git-receive-pack": "receive-pack"}[service]
	if command == "" {
		http.Error(w, "Please upgrade your git client.", http.StatusForbidden)
		return
	}
	if kind == "result" && r.Header.Get("Content-Type") != "application/x-"+service+"-request" {
		http.Error(w, "Unsupported Media Type", http.StatusUnsupportedMediaType)
		return
	}
	request, err := requestBody(w, r)
	if err != nil {
		http.Error(w, "read the pack: "+err.Error(), http.StatusRequestEntityTooLarge)
		return
	}
	w.Header().Set("Content-Type", "application/x-"+service+"-"+kind)
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	if command == "upload-pack" && r.Header.Get("Git-Protocol") == "version=2" && g.answerV2(w, packets(request)) {
		return
	}
	args := []string{command, "--stateless-rpc", g.repo.git.dir}
	if kind == "advertisement" {
		writePackets(w, "# service="+service)
		args = []string{command, "--http-backend-info-refs", g.repo.git.dir}
	}
	git := g.repo.git.command(r.Context(), args...)
	git.Env = append(git.Env, "GIT_PROTOCOL="+r.Header.Get("Git-Protocol"))
	if g.who.via() != nil && rank(g.who.token.permissions["workflows"]) < rank("write") {
		git.Env = append(git.Env, "FAKEGITHUB_WORKFLOWS=deny")
	}
	git.Stdin, git.Stdout = bytes.NewReader(request), w
	if g.write {
		var answer bytes.Buffer // collects git's whole output even if the client is gone
		git.Stdout = &answer
		defer answer.WriteTo(w)
	}
	git.Run() // the client sees an error as an incomplete answer
}

// requestBody reads the whole body: net/http drops the rest once the answer begins.
func requestBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body := io.Reader(http.MaxBytesReader(w, r.Body, maxPack))
	if r.Header.Get("Content-Encoding") == "gzip" {
		var err error
		if body, err = gzip.NewReader(body); err != nil {
			return nil, err
		}
	}
	return io.ReadAll(body)
}

// answerV2 serves capabilities and ls-refs (gitprotocol-v2), which need no process. It returns false for other
// requests.
func (g gitCall) answerV2(w http.ResponseWriter, asked []string) bool {
	if g.rest == "info/refs" {
		writePackets(w, "version 2", "agent=git/github-fake", "ls-refs=unborn", "fetch=shallow filter", "server-option", "object-format=sha1")
		return true
	}
	if !slices.Contains(asked, "command=ls-refs") {
		return false
	}
	refs, err := g.repo.git.listRefs(asked)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return true
	}
	writePackets(w, refs...)
	return true
}

// listRefs returns the lines that answer ls-refs.
func (b *bare) listRefs(asked []string) ([]string, error) {
	refs, err := b.refs()
	if err != nil {
		return nil, err
	}
	head, err := os.ReadFile(filepath.Join(b.dir, "HEAD"))
	if err != nil {
		return nil, err
	}
	branch := strings.TrimPrefix(strings.TrimSpace(string(head)), "ref: ")
	if refs[branch] != "" {
		refs["HEAD"] = refs[branch]
	} else if slices.Contains(asked, "unborn") {
		refs["HEAD"] = "unborn"
	}
	var lines, prefixes []string
	for _, argument := range asked {
		if prefix, is := strings.CutPrefix(argument, "ref-prefix "); is {
			prefixes = append(prefixes, prefix)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(refs)) { // HEAD sorts first
		begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if prefixes != nil && !slices.ContainsFunc(prefixes, begins) {
			continue
		}
		line := refs[name] + " " + name
		if name == "HEAD" && slices.Contains(asked, "symrefs") {
			line += " symref-target:" + branch
		}
		if strings.HasPrefix(name, "refs/tags/") && slices.Contains(asked, "peel") {
			line += b.peeled(name, refs[name])
		}
		lines = append(lines, line)
	}
	return lines, nil
}

// peeled returns the ls-refs attribute with an annotated tag's object, or an empty string.
func (b *bare) peeled(tag, sha string) string {
	of, err := b.object(tag + "^{}")
	if err != nil || of.sha == sha {
		return ""
	}
	return " peeled:" + of.sha
}

// packets splits a request's lines (gitprotocol-common, pkt-line).
func packets(request []byte) (lines []string) {
	for len(request) >= 4 {
		n, err := strconv.ParseUint(string(request[:4]), 16, 16)
		if err != nil || int(n) > len(request) {
			return lines
		}
		n = max(n, 4) // a flush or a delimiter
		lines = append(lines, strings.TrimSuffix(string(request[4:n]), "\n"))
		request = request[n:]
	}
	return lines
}

func writePackets(w io.Writer, lines ...string) error {
	var out bytes.Buffer
	for _, line := range lines {
		fmt.Fprintf(&out, "%04x%s\n", len(line)+5, line)
	}
	out.WriteString("0000")
	_, err := w.Write(out.Bytes())
	return err
}

// gitWriter records the status and can drop the answer.
type gitWriter struct {
	http.ResponseWriter
	mute   bool
	status int
}

func (w *gitWriter) WriteHeader(status int) {
	w.status = status
	if !w.mute {
		w.ResponseWriter.WriteHeader(status)
	}
}

func (w *gitWriter) Write(b []byte) (int, error) {
	if w.mute {
		return len(b), nil
	}
	return w.ResponseWriter.Write(b)
}
