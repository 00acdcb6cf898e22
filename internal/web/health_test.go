package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/web"
)

type check struct {
	Name   string
	OK     bool
	Detail string
}

type ready struct {
	Ready           bool
	Checks, Details []check
}

func (s *site) ready() (int, ready) {
	s.t.Helper()
	answer, body := s.get("/readyz")
	var got ready
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		s.t.Fatalf("%v in %s", err, body)
	}
	if kind := answer.Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/json") {
		s.t.Errorf("Content-Type %s", kind)
	}
	return answer.StatusCode, got
}

func TestFailedDetailLeavesTheServerReady(t *testing.T) {
	for detail, want := range map[string]check{"can be written": {"data_dir", true, "can be written"}, "disk \x1b[31mfull\n": {"data_dir", false, "disk full"}} {
		s := open(t, func(o *web.Options) {
			o.Details = []web.Detail{{Name: "data_dir", Run: func(context.Context) (bool, string) { return want.OK, detail }}}
		})
		code, got := s.ready()
		if diff := cmp.Diff(ready{true, []check{{"database", true, ""}}, []check{want}}, got); diff != "" || code != http.StatusOK {
			t.Errorf("%d (-want +got):\n%s", code, diff)
		}
		healthy := map[bool]string{true: "1", false: "0"}[want.OK]
		if body := s.page("/metrics"); !strings.Contains(body, "\npawl_healthy{part=\"data_dir\"} "+healthy+"\n") {
			t.Errorf("the metrics do not show that data_dir is %s", healthy)
		}
	}
}

func TestClosedDatabaseIsNotReadyButAlive(t *testing.T) {
	s := open(t, nil)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	code, got := s.ready()
	if code != http.StatusServiceUnavailable || got.Ready || got.Checks[0].OK || !strings.Contains(got.Checks[0].Detail, "closed") {
		t.Errorf("%d %+v", code, got)
	}
	if answer, body := s.get("/healthz"); answer.StatusCode != http.StatusOK || body != "ok\n" {
		t.Errorf("%s %q", answer.Status, body)
	}
}

// A hanging disk blocks its writers regardless of the context.
func TestHangingCheckTimesOut(t *testing.T) {
	t.Parallel() // waits for readyTime twice
	release, asked := make(chan struct{}), make(chan struct{}, 10)
	s := open(t, func(o *web.Options) {
		o.Details = []web.Detail{{Name: "data_dir", Run: func(context.Context) (bool, string) {
			asked <- struct{}{}
			<-release
			return true, ""
		}}}
	})
	for _, want := range []string{"no answer", "the previous check"} {
		if code, got := s.ready(); code != http.StatusOK || len(got.Details) != 1 || got.Details[0].OK || !strings.Contains(got.Details[0].Detail, want) {
			t.Errorf("%d %+v, want data_dir without an answer (%s)", code, got, want)
		}
	}
	if n := len(asked); n != 1 {
		t.Errorf("asked %d times before the first answer, want once", n)
	}
	close(release)
	for code, got := s.ready(); code != http.StatusOK || !got.Details[0].OK; code, got = s.ready() {
		if code != http.StatusOK {
			t.Fatalf("%d %+v", code, got)
		}
	}
}

func TestHangingDatabaseIsNotReady(t *testing.T) {
	t.Parallel() // waits for readyTime
	s := open(t, nil)
	// The only writing connection is in use, so the ping times out.
	conn, err := s.store.DB().Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	code, got := s.ready()
	if code != http.StatusServiceUnavailable || got.Checks[0].OK || !strings.Contains(got.Checks[0].Detail, "deadline") {
		t.Errorf("%d %+v", code, got)
	}
}
