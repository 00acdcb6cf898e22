package feedback

import (
	"regexp"
	"strings"
	"sync"
)

// Outside returns why a check run failed outside the work (billing, machine); empty if the work may be the cause. text
// has one failure per line, as "message" or "path:line: message"; indented lines continue the one before. Only GitHub's
// own sentences count, and only if nothing else failed: a test may print "operation canceled".
func Outside(text string) string {
	why, canceled, exited := "", "", false
	for line := range strings.Lines(text) {
		message, own := failureIn(line)
		if message == "" {
			continue
		}
		kind, known := sayingOf(message)
		if !own || !known {
			return ""
		}
		switch {
		case kind == exitCode:
			exited = true
		case kind == cancellation:
			canceled = infrastructure + ": " + message
		case why == "":
			why = kind + ": " + clipped(message, maxSentence)
		}
	}
	if why == "" && !exited {
		// A step that ended by itself failed before the cancellation.
		return canceled
	}
	return why
}

// maxSentence limits a quoted sentence in bytes.
const maxSentence = 200

func clipped(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// atLine matches an annotation's position. GitHub Actions' own messages have the path .github, a folder (seen in API
// answers).
var atLine = regexp.MustCompile(`^(\S[^:]*):\d+: `)

// failureIn returns a line's failure without its position, and whether GitHub Actions may have written it. message is
// empty for a continuation, a warning or a notice.
func failureIn(line string) (message string, own bool) {
	line = strings.TrimRight(line, " \r\n")
	if line == "" || line[0] == ' ' || line[0] == '\t' {
		return "", true
	}
	path := ".github"
	if m := atLine.FindStringSubmatch(line); m != nil {
		path, line = m[1], line[len(m[0]):]
	}
	for _, mild := range []string{"warning: ", "notice: "} {
		if strings.HasPrefix(line, mild) {
			return "", true
		}
	}
	return line, path == ".github"
}

// Kinds of GitHub's sentences. A cancellation is infrastructure if no step failed. An exit code alone has no meaning.
const (
	billing        = "billing"
	infrastructure = "infrastructure"
	cancellation   = "cancellation"
	exitCode       = "exit code"
)

type sentence struct {
	kind string
	re   *regexp.Regexp
}

// sayings lists GitHub's own sentences with their sources. A job's time limit is not listed: the work may hang. Of
// full disks, only the runner's own counts.
var sayings = sync.OnceValue(func() []sentence {
	return []sentence{
		// nodejs/admin#980, saltstack/salt#66484.
		{billing, regexp.MustCompile(`^The job was not started because recent account payments have failed or your spending limit needs to be increased`)},
		// davdroman/swiftui-text-builder#42, twitter/communitynotes#379.
		{billing, regexp.MustCompile(`^The job was not started because your account is locked due to a billing issue`)},
		// sazs34/MyActions#237 (2021), julioarguello/www-serverstartup-io#426 (2026).
		{billing, regexp.MustCompile(`^The job was not started because (the spending limit for Actions and Packages has been exceeded|an Actions budget is preventing further use)`)},
		// actions/runner#2040 and #2624 (self-hosted), actions/runner-images#9823 (hosted).
		{infrastructure, regexp.MustCompile(`^The (hosted|self-hosted) runner(: .{1,200}?)? lost communication with the server`)},
		// actions/runner#2427 and #2468.
		{infrastructure, regexp.MustCompile(`^The runner has received a shutdown signal`)},
		// spdk/spdk#3876, actions/runner#4065; the next sentence follows this one.
		{infrastructure, regexp.MustCompile(`^The job was not acquired by Runner of type \S+ even after multiple attempts`)},
		{infrastructure, regexp.MustCompile(`^Internal server error\. Correlation ID: `)},
		// buildsville/add-remove-label#3: no runner took the job for a day.
		{infrastructure, regexp.MustCompile(`^This request was automatically failed because there were no enabled runners online`)},
		// actions/runner-images#2179 (an incident), #3613, actions/runner#1727.
		{infrastructure, regexp.MustCompile(`^GitHub Actions has encountered an internal error when running your job`)},
		// actions/checkout#225: an action could not be fetched during an outage.
		{infrastructure, regexp.MustCompile(`^(Failed to download action '.*?'\. Error:? )?Response status code does not indicate success: 5\d\d `)},
		// actions/runner#1807, actions/runner-images#8166, rust-lang/rust#70738.
		{infrastructure, regexp.MustCompile(`^(Unhandled exception\. )?(System\.IO\.IOException: )?No space left on device( : '.*_diag/|$)`)},
		// actions/runner#2427. A job cancelled by a user or a newer push concludes cancelled, not failure.
		{cancellation, regexp.MustCompile(`^The operation was canceled\.$`)},
		// The last message of a job with a failed step.
		{exitCode, regexp.MustCompile(`^Process completed with exit code \d+\.$`)},
	}
})

func sayingOf(message string) (kind string, known bool) {
	message = strings.TrimPrefix(strings.TrimPrefix(message, "##[error]"), "Error: ")
	for _, s := range sayings() {
		if s.re.MatchString(message) {
			return s.kind, true
		}
	}
	return "", false
}
