package server

import (
	"net/http"
	"testing"
)

func TestOnlyAppRequestsJudgeItsCredentials(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		path   string
		status int
		away   bool
	}{
		{"/api/v3/app", 401, true},
		{"/app", 404, true},
		{"/app/installations/5/access_tokens", 401, true},
		{"/app/installations/5/access_tokens", 404, false},
		{"/repos/acme/app", 404, false},
		{"/repos/app/app/issues/3", 401, false},
		{"/api/v3/repos/acme/app", 401, false},
		{"/users/app", 404, false},
		{"/repos/acme/widgets", 503, true},
		{"/app", 200, false},
	} {
		q, err := http.NewRequest(http.MethodGet, "https://github.example.com"+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if why := refusal(q, tt.status); (why != nil) != tt.away {
			t.Errorf("%d to %s: %v, want it to affect GitHub's state: %t", tt.status, tt.path, why, tt.away)
		}
	}
}
