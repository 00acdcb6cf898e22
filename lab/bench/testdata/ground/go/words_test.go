package words

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCount(t *testing.T) {
	if n := Count("one two  three"); n != 3 {
		t.Errorf("%d words, want 3", n)
	}
}

func TestHandler(t *testing.T) {
	w := httptest.NewRecorder()
	Handler(w, httptest.NewRequest(http.MethodPost, "/", strings.NewReader("one two")))
	if got := w.Body.String(); got != "2\n" {
		t.Errorf("body %q, want 2", got)
	}
}
