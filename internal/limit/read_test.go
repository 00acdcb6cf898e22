package limit

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

// A proxy's page says nothing about the account, unless its status is 429.
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
		evidence := Evidence{Seen: Stream, Message: fmt.Sprintf("API Error: %d %s", status, page)}
		for path, e := range map[string]Evidence{"gateway": answer, "stream": stream, "text": evidence} {
			if got := Read(e).Kind; got != want {
				t.Errorf("%d by the %s: %q, want %q", status, path, got, want)
			}
		}
	}
}
