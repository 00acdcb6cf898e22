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
	"strings"
	"sync"
	"time"
)

// maxBody bounds the body of one request. Conversations of the scenarios stay
// under 1 MB.
const maxBody = 16 << 20

// Options is how a provider is started. The zero value accepts every credential
// and reads the system's clock.
type Options struct {
	// Key is the credential that a request must carry, as a bearer token, in
	// x-api-key, in x-goog-api-key or as ?key=. Empty accepts any and none.
	Key string
	// Now is the clock that reset times are counted from. Nil is time.Now.
	Now func() time.Time
}

// Server is a running provider. All methods may be called at any time from any
// goroutine.
type Server struct {
	options Options
	base    string
	http    *http.Server
	done    chan struct{}

	mu       sync.Mutex
	settings map[string]string
	requests recorder
	failures map[string]int // bad answers that each scenario URL gave
}

// Start listens on a free port of the loopback interface.
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

// Close cuts all connections, also those that hang by design, and waits until
// the server has stopped.
func (s *Server) Close() error {
	err := s.http.Close()
	<-s.done
	return err
}

// URL is the base URL at which the provider plays a scenario, without a slash at
// the end. The base URL for OpenAI clients is URL + "/v1". A scenario may end in
// ~ and a name of the caller's choice, which gives it a memory of its own. An
// unknown scenario answers every request with 404.
func (s *Server) URL(scenario string) string { return s.base + "/s/" + scenario }

// Set changes a setting for the requests that follow. A key alone is for all
// scenarios, "edit-loop~a/edits" for one scenario URL. The keys:
//
//	cwd            folder that absolute paths of edits start with; default: read from the request
//	reset_in       seconds until a usage limit resets (3600)
//	retry_after    seconds that a short rate limit asks to wait (2)
//	claim          window of an Anthropic limit: five_hour (default) or seven_day
//	limit_headers  1 adds the headers of a limit that is nearly used up to good answers
//	fails          bad answers before a scenario turns into edit-success; 0 is never
//	edits          edits of the loops (26)
//	script         steps of the scenario script, a list of Step in JSON
//	text           what the scenario says answers
//	bytes          length of long texts (100000; prose 24000)
//	lines          lines of long-stdout's command (4000)
//	delay_ms       pause after every piece of a streamed text (0; slow 1000)
//
// A number that does not parse counts as not set.
func (s *Server) Set(key, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings[key] = value
}

// Requests gives what has been received so far, oldest first, the last thousand
// at most.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests.all()
}

// scenarioPath takes /s/<scenario>[~<name>]/<path of the provider> apart.
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
		send(w, r, wire, t, set, s.answer(play, label, t, set), s.options.Now())
	}
}

// settled gives the settings for one scenario URL, its own over the general.
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

// answer asks the scenario and keeps count of bad answers.
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

// carries reports whether the request shows the credential in one of the places
// that the four protocols use.
func carries(r *http.Request, key string) bool {
	bearer, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	for _, shown := range []string{bearer, r.Header.Get("x-api-key"), r.Header.Get("x-goog-api-key"), r.URL.Query().Get("key")} {
		if subtle.ConstantTimeCompare([]byte(shown), []byte(key)) == 1 {
			return true
		}
	}
	return false
}

// control answers what the CLIs ask beside the models.
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

// reply writes a whole JSON answer.
func reply(w http.ResponseWriter, f failure) {
	w.Header().Set("Content-Type", "application/json")
	for key, value := range f.header {
		w.Header().Set(key, value)
	}
	w.WriteHeader(f.status)
	_ = json.NewEncoder(w).Encode(f.body) // a client that left needs no answer
}

// Limits of what Requests remembers; what is older is forgotten.
const (
	maxRequests      = 1000
	maxRequestsBytes = 256 << 20
)

// Request is one request as it arrived.
type Request struct {
	// Time is when it had arrived whole, by Options.Now.
	Time   time.Time
	Method string
	// Path begins with /s/<scenario>.
	Path string
	// Scenario is the scenario with its own name, "edit-success~a". It is empty
	// for a path outside /s/.
	Scenario string
	Header   http.Header
	// Body is as received, credentials and prompts included.
	Body []byte

	// Protocol is responses, chat, anthropic or gemini, and empty for what is
	// no request to a model. The fields below are read from the body.
	Protocol string
	Model    string
	// Effort is what the request says of how long to think: a word such as
	// high, or a budget in tokens such as 8192. Empty where it says nothing.
	Effort string
	// Tools are the names of the tools that the request offers. Requests
	// without tools are side requests: titles, topics, routing.
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
