package limit

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// TestPageIsReadTheSameOnEveryPath: a proxy's page says nothing of the account, unless it came with status 429.
func TestPageIsReadTheSameOnEveryPath(t *testing.T) {
	const page = "<!DOCTYPE html><html><title>Sorry</title></html>"
	for status, want := range map[int]policy.Ending{
		http.StatusTooManyRequests: policy.RateLimited,
		http.StatusForbidden:       policy.Disconnected,
		http.StatusBadGateway:      policy.Disconnected,
		http.StatusOK:              policy.Disconnected,
	} {
		answer := Answer(status, nil, []byte(page))
		stream := Evidence{Seen: Stream, Status: status, Message: page}
		told := Evidence{Seen: Stream, Message: fmt.Sprintf("API Error: %d %s", status, page)}
		for path, e := range map[string]Evidence{"gateway": answer, "stream": stream, "text": told} {
			if got := Read(e).Kind; got != want {
				t.Errorf("%d by the %s: %q, want %q", status, path, got, want)
			}
		}
	}
}
