package web_test

import (
	"context"
	"encoding/json"
	"errors"
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

func TestHealthIsOKAsLongAsTheProcessAnswers(t *testing.T) {
	s := open(t, nil)
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	if answer, body := s.get("/healthz"); answer.StatusCode != http.StatusOK || body != "ok\n" {
		t.Errorf("%s %q", answer.Status, body)
	}
}

func TestReadyNamesEveryCheck(t *testing.T) {
	s := open(t, func(o *web.Options) {
		o.Checks = []web.Check{{Name: "data_dir", Run: func(context.Context) error { return nil }}}
	})
	code, got := s.ready()
	if diff := cmp.Diff(ready{true, []check{{"database", true, ""}, {"data_dir", true, ""}}, []check{}}, got); diff != "" || code != http.StatusOK {
		t.Errorf("%d (-want +got):\n%s", code, diff)
	}
}

func TestOneFailingCheckMakesItNotReady(t *testing.T) {
	s := open(t, func(o *web.Options) {
		o.Checks = []web.Check{{Name: "data_dir", Run: func(context.Context) error { return errors.New("disk \x1b[31mfull\n") }}}
	})
	code, got := s.ready()
	if diff := cmp.Diff(ready{false, []check{{"database", true, ""}, {"data_dir", false, "disk full"}}, []check{}}, got); diff != "" || code != http.StatusServiceUnavailable {
		t.Errorf("%d (-want +got):\n%s", code, diff)
	}
}

func TestAClosedDatabaseMakesItNotReady(t *testing.T) {
	s := open(t, nil)
	if code, _ := s.ready(); code != http.StatusOK {
		t.Fatalf("%d before", code)
	}
	if err := s.store.Close(); err != nil {
		t.Fatal(err)
	}
	code, got := s.ready()
	if code != http.StatusServiceUnavailable || got.Ready || got.Checks[0].OK || !strings.Contains(got.Checks[0].Detail, "closed") {
		t.Errorf("%d %+v", code, got)
	}
}

func TestADatabaseThatDoesNotAnswerMakesItNotReady(t *testing.T) {
	s := open(t, nil)
	// The only writing connection is taken, so the ping waits until its time is over.
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
