package web_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/commands"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// pressed submits a button as a browser does.
func (s *site) pressed(path string) (*http.Response, string) {
	s.t.Helper()
	r := s.request(http.MethodPost, s.url+path)
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	r.Header.Set("Origin", s.url)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	return s.do(r)
}

func (s *site) logOf(t thread.ID) (all []thread.Operated) {
	s.t.Helper()
	events, err := s.store.Events(s.t.Context(), t, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	for _, e := range events {
		var o thread.Operated
		if err := json.Unmarshal(e.Data, &o); err != nil {
			s.t.Fatal(err)
		}
		all = append(all, o)
	}
	return all
}

// barred lists a thread page's buttons with the reasons that a reader gets. The repository is not paused.
func barred(repo string) (all []string) {
	why := map[policy.Permission]string{policy.Write: "you may not write to", policy.Maintain: "you do not maintain"}
	for _, c := range policy.Commands {
		if c.Page != "" && (c.Effect != policy.Pauses || c.Name == commands.Pausing(nil)) {
			all = append(all, fmt.Sprintf("%s: Not now: %s %s.", c.Name, why[c.Permission], repo))
		}
	}
	return all
}

// refusals returns a page's disabled buttons, each with its reason.
func refusals(page string) (all []string) {
	button := regexp.MustCompile(`/(\w+)"><button disabled>.*\n.*<span class="why">([^<]+)</span>`)
	for _, m := range button.FindAllStringSubmatch(page, -1) {
		all = append(all, m[1]+": "+m[2])
	}
	return all
}

func TestButtonsNeedWritePermissionAndAreLogged(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, map[string]string{"bob acme/gadgets": "read", "eve acme/gadgets": "maintain"}))
	s.everything()
	const page = "/threads/acme/gadgets/44"
	for _, login := range []string{"", "bob"} {
		s.cookie = nil
		if login != "" {
			s.signs(login, "/")
			if diff := cmp.Diff(barred("acme/gadgets"), refusals(s.page(page))); diff != "" {
				t.Errorf("the reason that a reader gets for each button of policy/commands.go (-want +got):\n%s", diff)
			}
		}
		for _, path := range []string{page + "/stop", page + "/pause", "/accounts/main/close", "/deliveries/a/retry"} {
			if answer, _ := s.pressed(path); answer.StatusCode < 400 {
				t.Errorf("%q at %s: %s", login, path, answer.Status)
			}
		}
	}
	s.signs("eve", "/")
	for _, path := range []string{"/accounts/main/close", "/deliveries/a/retry", "/threads/acme/widgets/7/retry"} {
		if answer, _ := s.pressed(path); answer.StatusCode != http.StatusNotFound {
			t.Errorf("a writer of another repository at %s: %s", path, answer.Status)
		}
	}
	if answer, body := s.pressed(page + "/retry"); answer.StatusCode != http.StatusConflict || !strings.Contains(body, "an attempt is running; stop it first.") {
		t.Errorf("a retry of a running attempt: %s\n%s", answer.Status, body)
	}
	for _, act := range []string{"stop", "pause"} {
		if answer, body := s.pressed(page + "/" + act); answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != page {
			t.Errorf("%s: %s to %q\n%s", act, answer.Status, answer.Header.Get("Location"), body)
		}
	}
	events, err := s.store.Events(t.Context(), s.thread("acme/gadgets#44"), 0)
	if err != nil {
		t.Fatal(err)
	}
	state, err := thread.Fold(events)
	if err != nil || state.Stopped != "eve asked to stop" {
		t.Errorf("%q (%v)", state.Stopped, err)
	}
	if by, err := commands.PausedBy(t.Context(), s.store, "acme", "gadgets"); err != nil || by == nil || by.By != "eve" {
		t.Errorf("paused by %+v (%v)", by, err)
	}
	if got := s.page("/threads/acme/gadgets/41"); !strings.Contains(got, "Not now: eve paused acme/gadgets.") || !strings.Contains(got, "Unpause") {
		t.Error("the thread page does not show the pause")
	}
	if got := s.page("/?repo=acme%2Fgadgets"); !strings.Contains(got, "eve paused acme/gadgets on the pages: no run begins there.") {
		t.Error("the list does not show the pause")
	}
	if answer, _ := s.pressed(page + "/unpause"); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("unpause: %s", answer.Status)
	}
}

func TestOperatorsCloseBreakersAndRetryDeliveries(t *testing.T) {
	s := open(t, nil)
	s.everything()
	if err := s.store.FinishDelivery(t.Context(), "a", thread.Unparsable, "no JSON"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/accounts/main/close", "/deliveries/a/retry"} {
		if answer, body := s.pressed(path); answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != "/accounts" {
			t.Errorf("%s: %s\n%s", path, answer.Status, body)
		}
		if answer, _ := s.pressed(path); path == "/accounts/main/close" && answer.StatusCode != http.StatusConflict {
			t.Errorf("%s again: %s", path, answer.Status)
		}
	}
	if left, err := s.store.Breakers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("breakers %v (%v)", left, err)
	}
	did := s.logOf(thread.ServerLog())
	if len(did) < 2 || did[0].By != "an operator at the server" || did[0].What != thread.OperatedBreaker || did[0].Subject != "main" || did[1].Subject != "a" {
		t.Errorf("the log contains %+v", did)
	}
	if page := s.page("/accounts"); !strings.Contains(page, "breaker closed <b>main</b>") {
		t.Error("the page does not name the user")
	}
	if answer, _ := s.pressed("/deliveries/all/retry"); answer.StatusCode != http.StatusConflict {
		t.Errorf("all at once through a URL: %s", answer.Status)
	}
}

func TestForeignPostDoesNothing(t *testing.T) {
	s := open(t, nil)
	s.busy()
	r := s.request(http.MethodPost, s.url+"/threads/acme/gadgets/44/stop")
	r.AddCookie(s.cookie)
	r.Header.Set("Origin", "https://evil.example")
	r.Header.Set("Sec-Fetch-Site", "cross-site")
	if answer, _ := s.do(r); answer.StatusCode != http.StatusForbidden {
		t.Errorf("%s", answer.Status)
	}
	if page := s.page("/threads/acme/gadgets/44"); strings.Contains(page, "asked to stop") {
		t.Error("the command took effect")
	}
}
