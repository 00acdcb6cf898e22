package limit

import "testing"

// The lines are the refusals of words.jsonl, and output of agents and tests.
func TestRefusalLines(t *testing.T) {
	for _, c := range loadRefusals(t, "words.jsonl") {
		if c.Status != 0 || !c.Kind.IsLimit() {
			continue
		}
		for _, mark := range []string{"", "Error: ", "✕ [API Error: "} {
			if got := Read(Evidence{Seen: Plain, Message: mark + c.Text, Now: resetNow}); got.Kind != c.Kind {
				t.Errorf("%s%s: %q, want %s", mark, c.Text, got.Kind, c.Kind)
			}
		}
	}
	for _, line := range []string{
		"I raised the rate limit in config.go to 60 requests per minute.",
		"The usage limit check now runs before the quota is read.",
		"Added a test for the case that the plan's quota is exceeded",
		"FAIL: TestQuotaExceeded (0.00s)",
		"--- FAIL: TestRateLimit/too_many_requests (0.01s)",
		"expected status 429 but got 200: rate limit not enforced",
		"AssertionError: expected 'rate limit exceeded' to equal 'ok'",
		"Error: expect(received).toBe(expected) // usage limit reached",
		"grep: usage limit: No such file or directory",
		"Credits are now shown in the account menu, and the balance turns red at zero.",
		"credits_test.go:14: balance is 0, want 5",
		"The server is busy-waiting in the loop; I replaced it by a channel.",
		"2 files changed: limits.go and quota.go",
		"Rate limiter: 3 of 4 tests pass",
		"make: *** [usage] Error 2",
		"panic: quota exceeded in test double",
		"AssertionError: message was 'Your prepaid wallet is empty'",
		"Error: the wallet module is empty",
		"ValueError: the monthly report was empty",
		"Error: queue job exceeded 5 retries",
		"FAILED tests/test_quota.py::test_daily_limit_reached",
	} {
		if got := Read(Evidence{Seen: Plain, Message: line}); got.Kind != "" {
			t.Errorf("%q: %s", line, got.Kind)
		}
	}
}

// Each text is the whole answer of a run without other events.
func TestErrorInsteadOfAnAnswer(t *testing.T) {
	for text, want := range map[string]bool{
		"[API Error: 401 status code (no body)]":                                          true,
		"API Error: 503 upstream connect error":                                           true,
		"Error: 429 Too Many Requests":                                                    true,
		"Error: fetch failed":                                                             true,
		"Request failed with status code 429":                                             true,
		"401 Unauthorized":                                                                true,
		`{"error":{"message":"Invalid API key","code":"invalid_api_key"}}`:                true,
		"You've hit your usage limit. Try again at 9:06 AM.":                              true,
		"AuthenticationError: No auth credentials found":                                  true,
		"Error: 401 means that the key is not sent; I would set it in the header first. ": false,
		"The error is a 401: the key is wrong.":                                           false,
		"Errors are now wrapped.":                                                         false,
		"Error handling: I added a retry to the client.":                                  false,
		"404 is returned for a missing page, as the test asks.":                           false,
		"Done. The rate limit is 60.":                                                     false,
		"No.":                                                                             false,
	} {
		if got, ok := Instead(Evidence{Message: text}); ok != want {
			t.Errorf("%q: %v (%s), want %v", text, ok, got.Kind, want)
		}
	}
}
