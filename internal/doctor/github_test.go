package doctor

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestDoctorComparesTheClockWithGitHubs(t *testing.T) {
	t.Parallel()
	for ahead, state := range map[time.Duration]string{0: OK, 50 * time.Second: OK, 70 * time.Second: Failed, -time.Hour: Failed} {
		gh := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		}))
		t.Cleanup(gh.Close)
		seen := &datedTransport{RoundTripper: http.DefaultTransport}
		resp, err := (&http.Client{Transport: seen}).Get(gh.URL)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		found := (&signedIn{ahead: seen.ahead.Load()}).clock()
		if len(found) != 1 || found[0].State != state || (state == Failed) != strings.Contains(found[0].Hint, "set the clock") {
			t.Errorf("%s ahead: %+v", ahead, found)
		}
	}
	if found := (&signedIn{}).clock(); len(found) > 0 {
		t.Errorf("nothing was heard: %+v", found)
	}
}
