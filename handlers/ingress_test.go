package handlers

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/solver/thread"
)

// memoryStore stores the ingress's deliveries, or fails with an error.
type memoryStore struct {
	list []thread.Delivery
	err  error
}

func (s *memoryStore) Receive(_ context.Context, d thread.Delivery) (bool, error) {
	if s.err != nil {
		return false, s.err
	}
	s.list = append(s.list, d)
	return true, nil
}

// GitHub's documented test vector: docs.github.com, "Validating webhook
// deliveries".
const (
	vectorSecret    = "It's a Secret to Everybody"
	vectorBody      = "Hello, World!"
	vectorSHA1      = "sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59"
	vectorSignature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

// newIngress passes requests signed with one of the secrets to a store. Without secrets it uses the vector's.
func newIngress(t *testing.T, store *memoryStore, secrets ...string) *Ingress {
	t.Helper()
	if len(secrets) == 0 {
		secrets = []string{vectorSecret}
	}
	in, err := NewIngress(secrets, new(Handlers).EventHandlers(), store, time.Now, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	return in
}

// asGitHub sets the vector's headers.
func asGitHub(h http.Header) {
	for k, v := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": "a-b-c", "X-Hub-Signature-256": vectorSignature} {
		h.Set(k, v)
	}
}

// post sends a body as GitHub does. The headers in header replace GitHub's.
func (in *Ingress) post(t *testing.T, body io.Reader, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/github/hook", body)
	asGitHub(r.Header)
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	in.ServeHTTP(w, r)
	return w
}

func send(t *testing.T, store *memoryStore, body string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	return newIngress(t, store).post(t, strings.NewReader(body), header)
}

func TestGitHubsTestVectorIsAccepted(t *testing.T) {
	for _, event := range []string{"ping", "telepathy"} { // go-githubapp does not know telepathy; a later version may
		var store memoryStore
		header := map[string]string{"X-GitHub-Event": event}
		if w := send(t, &store, vectorBody, header); w.Code != http.StatusOK {
			t.Fatalf("%s got status %d %s, want 200", event, w.Code, w.Body)
		}
		if len(store.list) != 1 || string(store.list[0].Payload) != vectorBody || store.list[0].GUID != "a-b-c" || store.list[0].Event != event {
			t.Errorf("stored %+v, want the unchanged body", store.list)
		}
		if w := send(t, &store, vectorBody+"!", header); w.Code != http.StatusUnauthorized || len(store.list) != 1 {
			t.Errorf("%s with another body got status %d, want 401", event, w.Code)
		}
	}
}

func TestWebhooksThatAreNotGitHubsAreRefused(t *testing.T) {
	const other = "sha256=" + "0000000000000000000000000000000000000000000000000000000000000000"
	for _, c := range []struct {
		name   string
		header map[string]string
		want   int
	}{
		{"no signature", map[string]string{"X-Hub-Signature-256": ""}, http.StatusUnauthorized},
		{"a signature with another secret", map[string]string{"X-Hub-Signature-256": other}, http.StatusUnauthorized},
		{"a signature of another text", map[string]string{"X-Hub-Signature-256": signed("{}")}, http.StatusUnauthorized},
		{"a signature cut short", map[string]string{"X-Hub-Signature-256": vectorSignature[:40]}, http.StatusUnauthorized},
		{"a signature that is not hexadecimal", map[string]string{"X-Hub-Signature-256": "sha256=zz"}, http.StatusUnauthorized},
		{"an empty signature", map[string]string{"X-Hub-Signature-256": "sha256="}, http.StatusUnauthorized},
		{"SHA-1 of the same text in SHA-256's header", map[string]string{"X-Hub-Signature-256": vectorSHA1}, http.StatusUnauthorized},
		{"SHA-256 without its name", map[string]string{"X-Hub-Signature-256": strings.TrimPrefix(vectorSignature, "sha256=")}, http.StatusUnauthorized},
		{"SHA-256 in capitals", map[string]string{"X-Hub-Signature-256": strings.ToUpper(vectorSignature)}, http.StatusUnauthorized},
		{"SHA-1 alone", map[string]string{"X-Hub-Signature-256": "", "X-Hub-Signature": vectorSHA1}, http.StatusUnauthorized},
		{"SHA-1 next to a wrong SHA-256", map[string]string{"X-Hub-Signature-256": "sha256=00", "X-Hub-Signature": vectorSHA1}, http.StatusUnauthorized},
		{"no GUID", map[string]string{"X-GitHub-Delivery": ""}, http.StatusBadRequest},
		{"a GUID with odd characters", map[string]string{"X-GitHub-Delivery": "../../etc/passwd"}, http.StatusBadRequest},
		{"a GUID of 200 characters", map[string]string{"X-GitHub-Delivery": strings.Repeat("a", 200)}, http.StatusBadRequest},
		{"no event", map[string]string{"X-GitHub-Event": ""}, http.StatusBadRequest},
		{"an event with odd characters", map[string]string{"X-GitHub-Event": "issues; drop table"}, http.StatusBadRequest},
	} {
		t.Run(c.name, func(t *testing.T) {
			var store memoryStore
			if w := send(t, &store, vectorBody, c.header); w.Code != c.want || len(store.list) != 0 {
				t.Errorf("status %d %q with %d stored, want %d", w.Code, w.Body, len(store.list), c.want)
			}
		})
	}
	w := httptest.NewRecorder()
	if newIngress(t, new(memoryStore)).ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/api/github/hook", nil)); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET got status %d, want 405", w.Code)
	}
}

// The log tells the operator which setting is wrong, even if the App has no secret and GitHub signs nothing.
func TestRefusedWebhookIsLogged(t *testing.T) {
	for name, row := range map[string]struct {
		header map[string]string
		words  []string // nil if nothing is logged
	}{
		"another secret": {map[string]string{"X-Hub-Signature-256": signed("{}")}, []string{"not signed with github.app.webhook_secret", "under Webhook", `"delivery":"a-b-c"`, `"event":"ping"`}},
		"no secret":      {map[string]string{"X-Hub-Signature-256": ""}, []string{"webhook refused: it is not signed", "under Webhook", `"delivery":"a-b-c"`}},
		"no webhook":     {map[string]string{"X-GitHub-Delivery": ""}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			in, err := NewIngress([]string{vectorSecret}, new(Handlers).EventHandlers(), new(memoryStore), time.Now, zerolog.New(&log))
			if err != nil {
				t.Fatal(err)
			}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/github/hook", strings.NewReader(vectorBody))
			asGitHub(r.Header)
			for key, value := range row.header {
				r.Header.Set(key, value)
			}
			in.ServeHTTP(httptest.NewRecorder(), r)
			for _, words := range row.words {
				if !strings.Contains(log.String(), words) {
					t.Errorf("the log does not contain %q: %s", words, &log)
				}
			}
			if len(row.words) == 0 && log.Len() > 0 || strings.Contains(log.String(), vectorSecret) {
				t.Errorf("the log has %s", &log)
			}
		})
	}
}

func TestPayloadsOfMoreThan25MiBAreRefused(t *testing.T) {
	for _, c := range []struct {
		name  string
		size  int
		known bool
		want  int
	}{
		{"one byte more", MaxPayload + 1, true, http.StatusRequestEntityTooLarge},
		{"one byte more, without a length", MaxPayload + 1, false, http.StatusRequestEntityTooLarge},
		{"exactly 25 MiB", MaxPayload, true, http.StatusOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			body := strings.Repeat("x", c.size)
			var from io.Reader = strings.NewReader(body)
			if !c.known {
				from = io.MultiReader(from) // hides the length, which net/http knows only for some readers
			}
			var store memoryStore
			w := newIngress(t, &store).post(t, from, map[string]string{"X-Hub-Signature-256": signed(body)})
			if w.Code != c.want || (len(store.list) == 1) != (c.want == http.StatusOK) {
				t.Errorf("status %d with %d stored, want %d", w.Code, len(store.list), c.want)
			}
		})
	}
}

func TestRedeliveriesCountOnce(t *testing.T) {
	w := newRig(t)
	issue := w.Opened("Please.")
	w.Must(w.comments(issue.Number, "ada", "/pawl solve")())
	w.Must(w.GitHub.WaitDelivered(t.Context()))
	command := w.newest().GUID
	for range 2 {
		for range 25 {
			w.Must(w.GitHub.Redeliver(command))
		}
		w.Handle() // the second half comes after the first was handled
	}
	for _, d := range w.GitHub.Deliveries() {
		if d.StatusCode != http.StatusOK {
			t.Errorf("%s %s got status %d, want 200", d.Event, d.GUID, d.StatusCode)
		}
	}
	if got := w.Judged(issue); len(got) != 1 {
		t.Errorf("judged %q, want one command", got)
	}
}

// Only fields that Pawl reads must be as documented. GitHub's own examples have odd values in others (see
// read_test.go).
func TestPayloadsThatCannotBeReadAreStoredAndMarked(t *testing.T) {
	w := newRig(t)
	for _, c := range []struct{ event, payload string }{
		{"check_run", `{"action": "completed", "check_run": {"id": 4, "completed_at": "2018-04-25 20:42:10"}}`},
		{"package", `{"action": `},
		{"issue_comment", `{"action": "created", "comment": {"id": "no number"}}`},
		{"issue_comment", `[]`},
		{"issue_comment", `not JSON`},
		{"issue_comment", ``},
		{"issues", `{"action": "edited", "changes": {"body": 7}}`},
		{"an_event_of_next_year", `{"action": "created"}`},
	} {
		guid := w.GitHub.Send(c.event, []byte(c.payload))
		w.Handle()
		if d, err := w.Store.Delivery(t.Context(), guid); err != nil || d.State != thread.Unparsable || d.Note == "" {
			t.Errorf("%s %s is %s (%s), %v; want unparsable with a reason", c.event, c.payload, d.State, d.Note, err)
		}
	}
}

// An App may be configured to send forms.
func TestFormJSONIsParsed(t *testing.T) {
	const body = "payload=" + "%7B%22zen%22%3A+%22x%22%7D"
	var store memoryStore
	w := send(t, &store, body, map[string]string{
		"Content-Type":        "application/x-www-form-urlencoded",
		"X-Hub-Signature-256": "sha256=0000000000000000000000000000000000000000000000000000000000000000",
	})
	if w.Code != http.StatusUnauthorized {
		t.Errorf("a form with a wrong signature got status %d, want 401", w.Code)
	}
	w = send(t, &store, body, map[string]string{"Content-Type": "application/x-www-form-urlencoded", "X-Hub-Signature-256": signed(body)})
	if w.Code != http.StatusOK || len(store.list) != 1 || string(store.list[0].Payload) != `{"zen": "x"}` {
		t.Errorf("status %d %s with %+v stored, want 200 and the form's JSON", w.Code, w.Body, store.list)
	}
}

func TestFailingStoreAnswers503(t *testing.T) {
	store := memoryStore{err: errors.New("database is locked")}
	w := send(t, &store, vectorBody, nil)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "locked") {
		t.Errorf("status %d %s, want 503 without the cause", w.Code, w.Body)
	}
}
