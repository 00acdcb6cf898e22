package fakeprovider_test

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakeprovider"
)

// statuses are the HTTP errors by scenario, for responses, chat, anthropic and
// gemini.
var statuses = map[string][4]int{
	"usage-limit":         {429, 429, 429, 429},
	"usage-limit-noreset": {429, 429, 429, 429},
	"usage-limit-insec":   {429, 429, 429, 429},
	"usage-not-included":  {429, 429, 429, 429},
	"insufficient-quota":  {429, 429, 400, 429},
	"rate-429":            {429, 429, 429, 429},
	"auth-401":            {401, 401, 401, 400}, // Google answers a bad key with 400
	"auth-403":            {403, 403, 403, 403},
	"overload-500":        {500, 500, 500, 500},
	"overload-503":        {503, 503, 503, 503},
	"overload-529":        {529, 529, 529, 529},
	"model-404":           {404, 404, 404, 404},
	"context-400":         {400, 400, 400, 400},
	"transient-429":       {429, 429, 429, 429},
	"transient-503":       {503, 503, 503, 503},
}

func TestErrorsHaveTheProvidersStatus(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	for scenario, want := range statuses {
		for i, protocol := range []string{"responses", "chat", "anthropic", "gemini"} {
			wire := wires[protocol]
			status, _, answer, err := post(t, s.URL(scenario+"~"+protocol)+wire.path(true), wire.ask("Go.", nil, wire.tools...))
			if err != nil || status != want[i] || !strings.Contains(string(answer), `"error"`) {
				t.Errorf("%s by %s: %d, want %d (%v)\n%s", scenario, protocol, status, want[i], err, answer)
			}
		}
	}
}

func TestGoodScenariosEndInEveryProtocol(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	s.Set("delay_ms", "0")
	s.Set("bytes", "5000")
	breaks := []string{"trunc-eof", "trunc-eof-once", "trunc-rst", "trunc-once", "garbage", "hang-headers", "hang-midstream", "trunc-after-edit"}
	for _, scenario := range fakeprovider.Scenarios() {
		if _, isError := statuses[scenario]; isError || slices.Contains(breaks, scenario) {
			continue
		}
		for protocol := range wires {
			h := talk(t, s, scenario, protocol, true)
			if strings.HasPrefix(scenario, "stream-") {
				if h.Error == "" || h.Finish != "" {
					t.Errorf("%s by %s: %+v", scenario, protocol, h)
				}
				continue
			}
			if h.Finish == "" || h.Error != "" {
				t.Errorf("%s by %s: %+v", scenario, protocol, h)
			}
		}
	}
}

func TestTruncatedAnswersNeverFinish(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	for _, c := range []struct {
		scenario string
		reset    bool
	}{{"trunc-eof", false}, {"trunc-rst", true}} {
		for protocol, wire := range wires {
			body := wire.ask("Go.", nil, wire.tools...)
			body["stream"] = true
			_, _, answer, err := post(t, s.URL(c.scenario)+wire.path(true), body)
			if (err != nil) != c.reset {
				t.Errorf("%s by %s ended with %v", c.scenario, protocol, err)
			}
			if h := parse(t, protocol, true, answer); h.Text == "" || h.Finish != "" {
				t.Errorf("%s by %s: %+v", c.scenario, protocol, h)
			}
		}
	}
}

func TestHangsEndWithTheServer(t *testing.T) {
	s, err := fakeprovider.Start(fakeprovider.Options{})
	if err != nil {
		t.Fatal(err)
	}
	wire := wires["anthropic"]
	body := wire.ask("Go.", nil, wire.tools...)
	body["stream"] = true
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL("hang-midstream")+wire.path(true), strings.NewReader(text(body)))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	begun := make([]byte, 20)
	if _, err := io.ReadFull(response.Body, begun); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(response.Body); err == nil {
		t.Error("the stream ended without an error")
	}
}

func TestWrongCredentialIsRefusedAsByTheProvider(t *testing.T) {
	s := start(t, fakeprovider.Options{Key: "right"})
	for protocol, c := range map[string]struct{ header, prefix, want string }{
		"responses": {"Authorization", "Bearer ", "invalid_api_key"},
		"chat":      {"Authorization", "Bearer ", "invalid_api_key"},
		"anthropic": {"x-api-key", "", "authentication_error"},
		"gemini":    {"x-goog-api-key", "", "API_KEY_INVALID"},
	} {
		wire := wires[protocol]
		url, body := s.URL("edit-success")+wire.path(false), wire.ask("Go.", nil, wire.tools...)
		if _, _, answer, err := post(t, url, body, c.header, c.prefix+"wrong"); err != nil || !strings.Contains(string(answer), c.want) {
			t.Errorf("%s with a wrong key: %v %s", protocol, err, answer)
		}
		if status, _, answer, err := post(t, url, body, c.header, c.prefix+"right"); err != nil || status != http.StatusOK {
			t.Errorf("%s with the right key: %d %v %s", protocol, status, err, answer)
		}
	}
}

func TestLimitsNameTheirReset(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	s := start(t, fakeprovider.Options{Now: func() time.Time { return now }})
	s.Set("reset_in", "1800")
	at := strconv.FormatInt(now.Unix()+1800, 10)
	for protocol, c := range map[string]struct{ header, value, body string }{
		"responses": {"x-codex-primary-reset-at", at, `"resets_at":` + at},
		"chat":      {"retry-after", "1800", `"resets_at":` + at},
		"anthropic": {"anthropic-ratelimit-unified-reset", at, "rate_limit_error"},
		"gemini":    {"", "", `"retryDelay":"1800s"`},
	} {
		wire := wires[protocol]
		_, head, answer, err := post(t, s.URL("usage-limit")+wire.path(true), wire.ask("Go.", nil, wire.tools...))
		if err != nil || head.Get(c.header) != c.value || !strings.Contains(string(answer), c.body) {
			t.Errorf("%s: %v %s=%q\n%s", protocol, err, c.header, head.Get(c.header), answer)
		}
	}
}

func TestTransientErrorsPassAndAreCountedPerURL(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	s.Set("usage-limit~b/fails", "1")
	wire := wires["anthropic"]
	ask := func(scenario string) (status int) {
		status, _, _, err := post(t, s.URL(scenario)+wire.path(false), wire.ask("Go.", nil, wire.tools...))
		if err != nil {
			t.Fatal(err)
		}
		return status
	}
	var got []int
	for _, scenario := range []string{"transient-503~a", "transient-503~a", "transient-503~c", "transient-503~a", "usage-limit~b", "usage-limit~b", "usage-limit", "usage-limit"} {
		got = append(got, ask(scenario))
	}
	if diff := cmp.Diff([]int{503, 503, 503, 200, 429, 200, 429, 429}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestEditFollowsOnlyAFailingTestTool(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	for protocol := range wires {
		for result, edits := range map[string]bool{
			"2 tests passed, 1 failed: TestParse": true, "FAIL: 1 of 3": true, `{"passed":false,"failed":["TestX"]}`: true,
			"3 passed, 0 failed": false, "ok: all tests pass, no failures": false, `{"passed":true,"failed":[]}`: false,
		} {
			if h := talk(t, s, "mcp", protocol, false, result); (len(h.Calls) == 1) != edits {
				t.Errorf("%s after %q: %+v", protocol, result, h)
			}
		}
	}
}

func TestLaterPromptStartsANewTurn(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	body := wires["chat"].ask("First.", []string{"written"}, wires["chat"].tools...)
	body["messages"] = append(body["messages"].([]any), object{"role": "assistant", "content": "Done."}, object{"role": "user", "content": "Second."})
	_, _, answer, err := post(t, s.URL("resume")+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	if h := parse(t, "chat", false, answer); len(h.Calls) != 1 || !strings.Contains(h.Calls[0], "turn2.txt") {
		t.Errorf("got %+v", h)
	}
	body["messages"] = append(body["messages"].([]any), object{"role": "tool", "content": "written"})
	_, _, answer, err = post(t, s.URL("resume")+"/v1/chat/completions", body)
	if err != nil {
		t.Fatal(err)
	}
	if h := parse(t, "chat", false, answer); !strings.HasPrefix(h.Text, "Turn 2 finished. I can see 2 user message(s) and 1 earlier tool result(s)") {
		t.Errorf("got %+v", h)
	}
}

func TestSideRequestsGetTitlesAndErrors(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	schema := object{"type": "object", "properties": object{"title": object{"type": "string"}, "next_speaker": object{"type": "string", "enum": []any{"model", "user"}}}}
	body := wires["gemini"].ask("Who speaks next?", nil)
	body["generationConfig"] = object{"responseJsonSchema": schema}
	_, _, answer, err := post(t, s.URL("edit-loop")+wires["gemini"].path(false), body)
	if err != nil {
		t.Fatal(err)
	}
	if h := parse(t, "gemini", false, answer); h.Text != `{"next_speaker":"user","title":"Mock title"}` {
		t.Errorf("got %q", h.Text)
	}
	if status, _, _, err := post(t, s.URL("auth-401")+wires["chat"].path(false), wires["chat"].ask("Title?", nil)); err != nil || status != 401 {
		t.Errorf("a side request to a provider that refuses the key: %d %v", status, err)
	}
}

func TestRequestsAreStoredAsReceived(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	bodies := map[string]object{"responses": {"reasoning": object{"effort": "xhigh"}}, "chat": {"reasoning_effort": "low"}, "anthropic": {"output_config": object{"effort": "max"}},
		"gemini": {"generationConfig": object{"thinkingConfig": object{"thinkingLevel": "HIGH"}}}}
	efforts := map[string]string{}
	for protocol, extra := range bodies {
		wire := wires[protocol]
		body := wire.ask("Go.", nil, wire.tools...)
		for key, value := range extra {
			body[key] = value
		}
		if _, _, _, err := post(t, s.URL("effort~x")+wire.path(false), body, "x-test", "1"); err != nil {
			t.Fatal(err)
		}
		all := s.Requests()
		got := all[len(all)-1]
		if string(got.Body) != text(body) || got.Header.Get("x-test") != "1" || got.Scenario != "effort~x" || got.Protocol != protocol ||
			got.Method != http.MethodPost || got.Model != "m" || !slices.Equal(got.Tools, wire.tools) {
			t.Errorf("%s: %+v", protocol, got)
		}
		efforts[protocol] = got.Effort
	}
	if diff := cmp.Diff(map[string]string{"responses": "xhigh", "chat": "low", "anthropic": "max", "gemini": "high"}, efforts); diff != "" {
		t.Errorf("efforts (-want +got):\n%s", diff)
	}
}

func TestUnknownScenariosAreNamed(t *testing.T) {
	s := start(t, fakeprovider.Options{})
	status, _, answer, err := post(t, s.URL("no-such")+"/v1/messages", object{})
	if err != nil || status != http.StatusNotFound || !strings.Contains(string(answer), "no-such") {
		t.Errorf("%d %v %s", status, err, answer)
	}
	var client http.Client
	if _, err := client.Get(s.URL("edit-success") + "/v1/models"); err != nil && !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}
