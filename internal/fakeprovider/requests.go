package fakeprovider

import (
	"net/http"
	"slices"
	"time"
)

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
