package web_test

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// steered submits a running attempt's form, as a browser does on a page of origin.
func (s *site) steered(origin, path, text string) (*http.Response, string) {
	s.t.Helper()
	r := s.request(http.MethodPost, s.url+path+"/steer")
	if s.cookie != nil {
		r.AddCookie(s.cookie)
	}
	form := url.Values{"text": {text}}.Encode()
	r.Body, r.ContentLength = io.NopCloser(strings.NewReader(form)), int64(len(form))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Origin", origin)
	return s.do(r)
}

func (s *site) state(name string) thread.State {
	s.t.Helper()
	_, state, err := thread.Load(s.t.Context(), s.store, s.thread(name))
	if err != nil {
		s.t.Fatal(err)
	}
	return state
}

func TestFieldSteersTheRunningAttempt(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, map[string]string{"bob acme/gadgets": "read", "eve acme/gadgets": "write"}))
	s.everything()
	const page, idle = "/threads/acme/gadgets/44", "/threads/acme/gadgets/41"
	for _, login := range []string{"", "bob"} {
		s.cookie = nil
		if login != "" {
			s.signs(login, "/")
			if got := s.page(page); strings.Contains(got, "<textarea") || !strings.Contains(got, "You cannot steer the agent: you may not write to acme/gadgets.") {
				t.Errorf("the page of %s shows the field, or no reason", login)
			}
		}
		if answer, _ := s.steered(s.url, page, "left"); answer.StatusCode < 400 {
			t.Errorf("%q steers: %s", login, answer.Status)
		}
	}
	s.signs("eve", "/")
	if got := s.page(idle); strings.Contains(got, "<textarea") || strings.Contains(got, "steer the agent") {
		t.Error("the page of a thread without a running attempt shows the field")
	}
	got := s.page(page)
	if !strings.Contains(got, `action="../../../threads/acme/gadgets/44/steer"`) || !strings.Contains(got, "Once the agent has ended, the text goes to the next attempt.") {
		t.Error("the page of a running attempt has no field, or does not explain late texts")
	}
	if answer, _ := s.steered("https://evil.example", page, "left"); answer.StatusCode != http.StatusForbidden {
		t.Errorf("another site steers: %s", answer.Status)
	}
	for text, why := range map[string]string{
		" <!-- left --> ":                "the text is empty",
		strings.Repeat("x", 16<<10+1):    "the text is longer than 16384 bytes",
		strings.Repeat("\u20ac", 20<<10): "the form cannot be read",
	} {
		if answer, body := s.steered(s.url, page, text); answer.StatusCode != http.StatusConflict || !strings.Contains(body, why) {
			t.Errorf("a text of %d bytes: %s, want %q", len(text), answer.Status, why)
		}
	}
	before := len(s.state("acme/gadgets#44").Feedback)
	for _, text := range []string{"left", "left", "right <!-- hidden -->\r\n/pawl stop"} {
		if answer, body := s.steered(s.url, page, text); answer.StatusCode != http.StatusSeeOther || answer.Header.Get("Location") != page {
			t.Errorf("%q: %s to %q\n%s", text, answer.Status, answer.Header.Get("Location"), body)
		}
	}
	state := s.state("acme/gadgets#44")
	var texts []string
	for _, r := range state.Feedback[before:] {
		texts = append(texts, fmt.Sprintf("%s: %s", r.By.Login, r.Text))
		if r.Steer != policy.SteerAgent {
			t.Errorf("%q is %q, want it delivered to the running agent", r.Text, r.Steer)
		}
	}
	want := "eve: left|eve: left|eve: right \n/pawl stop"
	if got := strings.Join(texts, "|"); got != want || len(state.Feedback) != before+3 || state.Stopped != "" {
		t.Errorf("the agent gets %q, want %q; stopped: %q", got, want, state.Stopped)
	}
	// The form was still open when its attempt ended.
	if answer, _ := s.steered(s.url, idle, "later"); answer.StatusCode != http.StatusSeeOther {
		t.Errorf("without a running attempt: %s", answer.Status)
	}
	if state := s.state("acme/gadgets#41"); len(state.Fresh()) != 1 || state.Fresh()[0].Text != "later" || state.Fresh()[0].Steer != policy.SteerIdle {
		t.Errorf("the text is %+v, want feedback", state.Fresh())
	}
}

// An attempt that only merges the base has no agent.
func TestNoFieldWithoutAnAgent(t *testing.T) {
	clock := now
	s := open(t, withGitHub(t, &clock, map[string]string{"eve acme/gadgets": "write"}))
	s.everything()
	s.happened("acme/gadgets#41", now, thread.KindAttemptStarted, thread.Started{N: 9, Run: 9, NoAgent: true})
	s.signs("eve", "/")
	if got := s.page("/threads/acme/gadgets/41"); !strings.Contains(got, "Attempt 9 is running") || strings.Contains(got, "<textarea") {
		t.Error("the page shows the field, or no running attempt")
	}
}
