package gateway

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pawlbot/pawl/config"
)

type answers http.HandlerFunc

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	a(w, r)
	return w.Result(), nil
}

func TestListErrorsNameAWrongKey(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		want   error // nil for any other error
	}{
		"Gemini's wrong key":  {plain(400, `{"error":{"details":[{"reason":"API_KEY_INVALID"}]}}`), ErrKey},
		"another bad request": {plain(400, `{"error":{"status":"INVALID_ARGUMENT"}}`), nil},
		"a forbidden key":     {plain(403, `{}`), ErrKey},
		"no such method":      {plain(405, `{}`), ErrNoList},
		"an outage":           {plain(500, `{}`), nil},
	} {
		_, err := List(t.Context(), answers(c.answer), config.Provider{Protocol: config.Google, BaseURL: "http://provider"})
		if errors.Is(err, ErrKey) != (c.want == ErrKey) || errors.Is(err, ErrNoList) != (c.want == ErrNoList) || err == nil {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
