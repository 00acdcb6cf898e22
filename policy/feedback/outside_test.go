package feedback

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The messages come from the sources that outside.go names.
func TestGitHubsFailuresAreOutsideTheWork(t *testing.T) {
	const exit = ".github:40: Process completed with exit code 143.\n"
	for _, c := range []struct{ name, text, kind string }{
		{"failed payments", ".github:1: The job was not started because recent account payments have failed or your spending limit needs to be increased. Please check the 'Billing & plans' section in your settings", billing},
		{"a locked account", ".github:1: The job was not started because your account is locked due to a billing issue.", billing},
		{"a spending limit", "The job was not started because the spending limit for Actions and Packages has been exceeded.", billing},
		{"a budget", "The job was not started because an Actions budget is preventing further use", billing},
		{"a lost hosted runner", ".github:1: The hosted runner: GitHub Actions 8 lost communication with the server. Anything in your workflow that terminates the runner process, starves it for CPU/Memory, or blocks its network access can cause this error.", infrastructure},
		{"a lost hosted runner without a name", "The hosted runner lost communication with the server.", infrastructure},
		{"a lost self-hosted runner", ".github:1: The self-hosted runner: i-0ab lost communication with the server. Verify the machine is running and has a healthy network connection.", infrastructure},
		{"a shutdown", ".github:31: The runner has received a shutdown signal. This can happen when the runner service is stopped, or a manually started runner is canceled.\n" + exit + ".github:41: The operation was canceled.", infrastructure},
		{"only a cancellation", ".github:9: The operation was canceled.", infrastructure},
		{"no runner", "The job was not acquired by Runner of type hosted even after multiple attempts\nInternal server error. Correlation ID: a757294c-34c1-4862-8943-c4184553a155", infrastructure},
		{"no runner for a day", "This request was automatically failed because there were no enabled runners online to process the request for more than 1 days.", infrastructure},
		{"an internal error", ".github:1: GitHub Actions has encountered an internal error when running your job.", infrastructure},
		{"an outage of downloads", ".github:7: Response status code does not indicate success: 500 (Internal Server Error).", infrastructure},
		{"a full disk", ".github:1: System.IO.IOException: No space left on device : '/home/runner/runners/2.308.0/_diag/Worker_20230824-111853-utc.log'\n     at System.IO.RandomAccess.WriteAtOffset(SafeFileHandle handle)\n.github:2: warning: You are running out of disk space. The runner will stop working when the machine runs out of disk space. Free space left: 32 MB", infrastructure},
		{"a sentence in a log's format", "##[error]The runner has received a shutdown signal.", infrastructure},
	} {
		if why := Outside(c.text); !strings.HasPrefix(why, c.kind+": ") || len(why) > 260 {
			t.Errorf("%s: %q, want a short reason of kind %s", c.name, why, c.kind)
		}
	}
}

func TestOtherFailuresAreNotOutside(t *testing.T) {
	const lost = ".github:1: The hosted runner: GitHub Actions 8 lost communication with the server.\n"
	for name, text := range map[string]string{
		"no text":                                        "",
		"only a failed step":                             ".github:12: Process completed with exit code 1.",
		"a failing test":                                 "a_test.go:7: TestSorted: want [1 2], got [2 1]\n.github:12: Process completed with exit code 1.",
		"a failing test, then a lost runner":             "a_test.go:7: TestSorted: want [1 2], got [2 1]\n" + lost,
		"a lost runner, then a failing test":             lost + "a_test.go:7: TestSorted: want [1 2], got [2 1]",
		"a failing test in a GitHub Actions annotation":  ".github:3: TestSorted failed\n.github:12: The operation was canceled.",
		"a test that quotes GitHub's sentence":           "a_test.go:7: want no error, got: The operation was canceled.",
		"a test's message that equals GitHub's sentence": "a_test.go:7: The operation was canceled.",
		"a step that failed before the cancellation":     ".github:12: Process completed with exit code 2.\n.github:13: The operation was canceled.",
		"a job beyond its time limit":                    ".github:1: The job running on runner GitHub Actions 3 has exceeded the maximum execution time of 360 minutes.\n.github:1: The operation was canceled.",
		"a job beyond its time limit, in other words":    "The job has exceeded the maximum execution time of 6h0m0s",
		"a step beyond its time limit":                   ".github:8: The action 'Test' has timed out after 5 minutes.",
		"a full disk in a program's output":              ".github:8: write /tmp/x: no space left on device",
		"the output of another App":                      "3 of 9 failed\n\nThe operation was canceled.",
		"unavailable annotations":                        "(The annotations of this check run could not be fetched: no answer)",
		"only a warning":                                 ".github:1: warning: The runner has received a shutdown signal.",
		"a download that does not exist":                 "Response status code does not indicate success: 404 (Not Found).",
	} {
		if why := Outside(text); why != "" {
			t.Errorf("%s: %q, want nothing", name, why)
		}
	}
}

// A failing test can print GitHub's sentences. With any further failure in the output, the cause is not outside the work.
func TestFurtherFailureIsNotOutside(t *testing.T) {
	own := []string{"The operation was canceled.", "The runner has received a shutdown signal.", "Process completed with exit code 1.",
		"The job was not started because your account is locked due to a billing issue."}
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOf(rapid.SampledFrom(own)).Draw(t, "own")
		at := rapid.IntRange(0, len(lines)).Draw(t, "at")
		failure := "x_test.go:1: " + rapid.StringMatching(`[a-zA-Z.:' ]{1,60}[a-z]`).Filter(func(s string) bool {
			return !strings.HasPrefix(s, "warning: ") && !strings.HasPrefix(s, "notice: ")
		}).Draw(t, "failure")
		text := strings.Join(append(append(lines[:at:at], failure), lines[at:]...), "\n")
		if why := Outside(text); why != "" {
			t.Fatalf("%q is outside: %s", text, why)
		}
	})
}
