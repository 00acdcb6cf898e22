package fakeprovider

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// maxBody limits a request's body. The scenarios' conversations stay below 1 MB.
const maxBody = 16 << 20

// Options configure a provider. The zero value accepts every credential and uses the system's clock.
type Options struct {
	// Key is the required credential: a bearer token, x-api-key, x-goog-api-key or ?key=. Empty accepts any.
	Key string
	// Now is the clock for reset times; nil means time.Now.
	Now func() time.Time
}

// Server is a running provider, safe for concurrent use.
type Server struct {
	options Options
	base    string
	http    *http.Server
	done    chan struct{}

	mu       sync.Mutex
	settings map[string]string
	requests recorder
	failures map[string]int // bad answers by scenario URL
	answered int            // good answers
}

// Start listens on a free loopback port.
func Start(o Options) (*Server, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the fake provider: %w", err)
	}
	s := &Server{options: o, base: "http://" + listener.Addr().String(), done: make(chan struct{}),
		settings: map[string]string{}, failures: map[string]int{}}
	s.http = &http.Server{Handler: http.HandlerFunc(s.serve), ReadHeaderTimeout: time.Minute}
	go func() {
		defer close(s.done)
		_ = s.http.Serve(listener) // ends with ErrServerClosed
	}()
	return s, nil
}

// Close cuts all connections, and waits until the server has stopped.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

// URL returns a scenario's base URL without a trailing slash. OpenAI clients append /v1. A scenario with a suffix such
// as ~a has its own memory. Unknown scenarios answer 404.
func (s *Server) URL(scenario string) string { return s.base + "/s/" + scenario }

// Set changes a setting for later requests. A bare key applies to all scenarios, and a key such as "edit-loop~a/edits"
// applies to one scenario URL. The keys:
//
//	cwd            folder that absolute paths of edits start with; default: read from the request
//	reset_in       seconds until a usage limit resets (3600)
//	retry_after    seconds that a short rate limit asks to wait (2)
//	claim          window of an Anthropic limit: five_hour (default) or seven_day
//	limit_headers  1 adds the headers of usage windows to good answers
//	used           used percentage of the five-hour window in these headers (92)
//	used_step      percentage points that each good answer adds to used (0); at 100 the provider refuses
//	fails          bad answers before a scenario turns into edit-success; 0 is never
//	edits          edits in each loop scenario (26)
//	script         steps of the scenario script, a list of Step in JSON
//	text           answer of the scenario says
//	bytes          length of long texts (100000; prose 24000)
//	lines          lines of long-stdout's command (4000)
//	delay_ms       pause after every piece of a streamed text (0; slow 1000)
//
// A number that cannot be parsed is ignored.
func (s *Server) Set(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings[key] = value
}

// Requests returns the last thousand requests, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests.all()
}

// scenarioPath parses /s/<scenario>[~<name>]/<the provider's path>.
var scenarioPath = regexp.MustCompile(`^/s/([a-z0-9-]+)(~[A-Za-z0-9._-]+)?(/.*)?$`)

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		reply(w, failure{status: http.StatusRequestEntityTooLarge, body: object{"error": object{"message": "request too large", "type": "request_too_large"}}})
		return
	}
	if err != nil {
		return // the client is gone
	}
	parts := scenarioPath.FindStringSubmatch(r.URL.Path)
	if parts == nil {
		parts = []string{"", "", "", r.URL.Path}
	}
	name, label, path := parts[1], parts[1]+parts[2], parts[3]
	wire, t := read(path, r, body)
	s.mu.Lock()
	s.requests.add(Request{Time: s.options.Now(), Method: r.Method, Path: r.URL.Path, Scenario: label,
		Header: r.Header.Clone(), Body: body, Protocol: t.protocol, Model: t.model, Effort: t.effort, Tools: t.names()})
	s.mu.Unlock()

	play, known := scenarios()[name]
	switch {
	case r.Method == http.MethodHead:
		w.WriteHeader(http.StatusOK) // reachability checks
	case !known:
		reply(w, notFound("the fake provider has no scenario "+name))
	case wire == nil:
		control(w, path)
	case s.options.Key != "" && !carries(r, s.options.Key):
		reply(w, wire.failure("auth-401", s.settled(label), s.options.Now()))
	default:
		set := s.settled(label)
		a := s.answer(play, label, t, set)
		if set["used_step"] != "" && !a.bad() {
			a = s.meter(a, set)
		}
		send(w, r, wire, t, set, a, s.options.Now())
	}
}

// settled returns a scenario URL's settings. Its own settings override general ones.
func (s *Server) settled(label string) settings {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := settings(maps.Clone(s.settings))
	for key, value := range s.settings {
		if own, ok := strings.CutPrefix(key, label+"/"); ok {
			out[own] = value
		}
	}
	return out
}

// answer runs the scenario and counts bad answers.
func (s *Server) answer(play scenario, label string, t turn, set settings) answer {
	fails := set.number("fails", play.fails)
	if t.side() && (play.answersSide || fails > 0) {
		return sideAnswer(t)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a := play.answer(t, set)
	if !a.bad() {
		return a
	}
	if fails > 0 && s.failures[label] >= fails {
		return editSuccess(t, set)
	}
	s.failures[label]++
	return a
}

// meter counts a good answer in the five-hour window, and refuses it if the window is full.
func (s *Server) meter(a answer, set settings) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := set.number("used", 92) + s.answered*set.number("used_step", 0)
	if used >= 100 {
		return answer{kind: refused, name: "usage-limit"}
	}
	set["used"] = strconv.Itoa(used)
	s.answered++
	return a
}

// carries reports whether the request has the credential where any of the four protocols puts it.
func carries(r *http.Request, key string) bool {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, shown := range []string{bearer, r.Header.Get("x-api-key"), r.Header.Get("x-goog-api-key"), r.URL.Query().Get("key")} {
		if subtle.ConstantTimeCompare([]byte(shown), []byte(key)) == 1 {
			return true
		}
	}
	return false
}

// control answers requests that are not for a model, such as token counts.
func control(w http.ResponseWriter, path string) {
	switch {
	case strings.HasSuffix(path, ":countTokens"):
		reply(w, failure{status: http.StatusOK, body: object{"totalTokens": usageInput}})
	case strings.HasSuffix(path, "/count_tokens"):
		reply(w, failure{status: http.StatusOK, body: object{"input_tokens": usageInput}})
	default:
		reply(w, notFound("not found"))
	}
}

func notFound(message string) failure {
	return failure{status: http.StatusNotFound, body: object{"error": object{"message": message, "type": "not_found"}}}
}

func reply(w http.ResponseWriter, f failure) {
	w.Header().Set("Content-Type", "application/json")
	for key, value := range f.header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(f.body) // the client may be gone
}

// Limits of the stored requests.
const (
	maxRequests      = 1000
	maxRequestsBytes = 256 << 20
)

type Request struct {
	// Time is when the complete request had arrived, by Options.Now.
	Time   time.Time
	Method string
	// Path begins with /s/<scenario>.
	Path string
	// Scenario includes the name, such as edit-success~a. It is empty for a path outside /s/.
	Scenario string
	Header   http.Header
	// Body is the raw body, including credentials and prompts.
	Body []byte

	// Protocol is responses, chat, anthropic or gemini; empty if the request is not for a model. The fields below are
	// read from the request in that protocol.
	Protocol string
	Model    string
	// Effort is the requested effort: a word such as high, or a budget in tokens; empty if missing.
	Effort string
	// Tools are the offered tools. Requests without tools are side requests: titles, topics, routing.
	Tools []string
}

// recorder keeps the last requests.
type recorder struct {
	kept  []Request
	bytes int
}

func (r *recorder) add(request Request) {
	r.kept = append(r.kept, request)
	r.bytes += len(request.Body)
	for len(r.kept) > maxRequests || r.bytes > maxRequestsBytes {
		r.bytes -= len(r.kept[0].Body)
		r.kept = r.kept[1:]
	}
}

func (r *recorder) all() []Request { return slices.Clone(r.kept) }
