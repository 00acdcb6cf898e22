package handlers

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/solver/thread"
)

// kept is what the ingress handed on, or the error with which that is refused.
type kept struct {
	list []thread.Delivery
	err  error
}

func (k *kept) Receive(_ context.Context, d thread.Delivery) (bool, error) {
	if k.err != nil {
		return false, k.err
	}
	k.list = append(k.list, d)
	return true, nil
}

// GitHub's documented test vector: docs.github.com, "Validating webhook
// deliveries".
const (
	vectorSecret    = "It's a Secret to Everybody"
	vectorBody      = "Hello, World!"
	vectorSignature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
)

func send(t *testing.T, store *kept, body string, header map[string]string) *httptest.ResponseRecorder {
	t.Helper()
	in, err := NewIngress([]string{vectorSecret}, new(Handlers).EventHandlers(), store, time.Now, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/github/hook", strings.NewReader(body))
	for k, v := range map[string]string{"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": "a-b-c", "X-Hub-Signature-256": vectorSignature} {
		r.Header.Set(k, v)
	}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	in.ServeHTTP(w, r)
	return w
}

func TestGitHubsTestVectorIsAccepted(t *testing.T) {
	var store kept
	if w := send(t, &store, vectorBody, nil); w.Code != http.StatusOK {
		t.Fatalf("answered %d %s, want 200", w.Code, w.Body)
	}
	if len(store.list) != 1 || string(store.list[0].Payload) != vectorBody || store.list[0].GUID != "a-b-c" || store.list[0].Event != "ping" {
		t.Errorf("handed on %+v, want the body as it came", store.list)
	}
	if w := send(t, &store, vectorBody+"!", nil); w.Code != http.StatusUnauthorized || len(store.list) != 1 {
		t.Errorf("another body was answered %d, want 401", w.Code)
	}
}

func TestOtherHashesAreRefusedWhereSHA256Belongs(t *testing.T) {
	// Both are true signatures of the vector's body, so only the kind of hash is
	// wrong.
	for _, signature := range []string{
		"sha1=01dc10d0c83e72ed246219cdd91669667fe2ca59",
		"sha1=0000000000000000000000000000000000000000",
		strings.TrimPrefix(vectorSignature, "sha256="),
		strings.ToUpper(vectorSignature),
	} {
		var store kept
		if w := send(t, &store, vectorBody, map[string]string{"X-Hub-Signature-256": signature}); w.Code != http.StatusUnauthorized || len(store.list) != 0 {
			t.Errorf("%s was answered %d, want 401", signature, w.Code)
		}
	}
}

// An App may be set up to send forms.
func TestAnEventThatGoGithubDoesNotKnowIsStored(t *testing.T) {
	var store kept
	w := send(t, &store, vectorBody, map[string]string{"X-GitHub-Event": "telepathy"})
	if w.Code != http.StatusOK || len(store.list) != 1 || store.list[0].Event != "telepathy" {
		t.Errorf("answered %d and stored %+v, want it kept for a later version", w.Code, store.list)
	}
	if w := send(t, &store, vectorBody+"!", map[string]string{"X-GitHub-Event": "telepathy"}); w.Code != http.StatusUnauthorized || len(store.list) != 1 {
		t.Errorf("with a wrong signature it was answered %d, want 401", w.Code)
	}
}

func TestTheJSONOfAFormIsHandedOn(t *testing.T) {
	const body = "payload=" + "%7B%22zen%22%3A+%22x%22%7D"
	var store kept
	w := send(t, &store, body, map[string]string{
		"Content-Type":        "application/x-www-form-urlencoded",
		"X-Hub-Signature-256": "sha256=0000000000000000000000000000000000000000000000000000000000000000",
	})
	if w.Code != http.StatusUnauthorized {
		t.Errorf("a form with a wrong signature was answered %d, want 401", w.Code)
	}
	values, err := url.ParseQuery(body)
	if err != nil {
		t.Fatal(err)
	}
	w = send(t, &store, body, map[string]string{"Content-Type": "application/x-www-form-urlencoded", "X-Hub-Signature-256": signed(body)})
	if w.Code != http.StatusOK || len(store.list) != 1 || string(store.list[0].Payload) != values.Get("payload") {
		t.Errorf("answered %d %s, handed on %+v, want the JSON of the form", w.Code, w.Body, store.list)
	}
}

func TestAStoreThatTakesNothingIsAnswered503(t *testing.T) {
	store := kept{err: errors.New("database is locked")}
	w := send(t, &store, vectorBody, nil)
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "locked") {
		t.Errorf("answered %d %s, want 503 that keeps the cause to itself", w.Code, w.Body)
	}
}
