package server_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/queue"
	"github.com/pawlbot/pawl/internal/testrig"
)

// maxCalls limits the GitHub API calls for one solved issue. It does not count git requests, searches for missed
// deliveries, and calls that only a server's first issue causes. Four calls check the user's permission: at the
// command, and before the push, the pull request, and the request for review.
const maxCalls = 15

// ofTheServer lists calls that no issue causes: the server makes them at its start and periodically.
var ofTheServer = []string{"GET /app", "GET /app/hook/config", "GET /users/{login}", "POST /app/installations/{id}/access_tokens"}

func TestSolvedIssueCostsFewAPICalls(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: "verify: ['grep -q two a.txt']\n"})
	r.Agent("echo two >> a.txt\n", "")
	r.World.ResetCalls()
	r.Start()
	// The first search for missed deliveries also compares Pawl's threads with GitHub. There are none yet.
	db := r.Database()
	r.Await("the end of the first look", func() bool {
		var duty []byte
		err := db.QueryRowContext(t.Context(), "SELECT data FROM shared WHERE key = 'duty catch-up'").Scan(&duty)
		return err == nil && !bytes.Contains(duty, []byte(`"held"`))
	})
	r.Settle()
	for _, which := range []string{"first", "second"} {
		n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A "+which+" line", "Please add a line to a.txt.")
		r.Must(err)
		_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
		r.Must(err)
		if s := r.Ending(n); s.State != "done" {
			t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
		}
		calls, sum := r.World.Calls(), 0
		var list []string
		for _, route := range slices.Sorted(maps.Keys(calls)) {
			if strings.Contains(route, ".git/") || strings.HasPrefix(route, "GET /app/hook/deliveries") {
				continue
			}
			if !slices.Contains(ofTheServer, route) {
				sum += calls[route]
			}
			list = append(list, fmt.Sprintf("%d × %s", calls[route], route))
		}
		t.Logf("the %s issue cost %d calls:\n%s", which, sum, strings.Join(list, "\n"))
		r.World.ResetCalls()
		if sum == 0 || sum > maxCalls {
			t.Errorf("the %s issue cost %d calls, more than %d", which, sum, maxCalls)
		}
		if all := time.Duration(sum) * forge.TryTimeout; all > queue.DeliveryTimeout {
			t.Errorf("a delivery is cut off after %s, and its calls may take %s", queue.DeliveryTimeout, all)
		}
	}
}
