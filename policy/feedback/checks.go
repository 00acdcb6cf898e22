package feedback

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Class is the meaning of another check's failure.
type Class string

const (
	// Ours was caused by the work: the agent gets the failure.
	Ours Class = "ours"
	// Before also fails without the work. No agent gets it.
	Before Class = "was there before"
	// Flaky passed in a second run on the same commit.
	Flaky Class = "flaky"
	// Infrastructure is a failure of the machine, the account or the network.
	Infrastructure Class = "infrastructure"
)

// Failing reports whether a check's conclusion is a failure.
func Failing(conclusion string) bool {
	return slices.Contains([]string{"failure", "timed_out", cancelled}, conclusion)
}

const cancelled = "cancelled"

// Failure is another check's failure on the work's last commit. Start and Base are its conclusions on the work's
// first base and on the current base; empty if unknown.
type Failure struct {
	Conclusion, Start, Base string
	BaseRef                 string
	Behind                  bool     // the head lacks commits of the base
	WasOurs                 bool     // Ours on an earlier commit
	Again                   bool     // passed later on the same commit
	Gone                    bool     // no longer on GitHub
	Late                    bool     // ran again, and has not finished
	Output                  string   // the check's output, for Outside
	Log                     []string // the last lines of the failed step
	Tests                   int      // failing tests named in the log
}

// Classify returns a failure's class and the reason. update means that the base has fixed it and the head lacks the
// fix.
func Classify(f Failure) (class Class, reason string, update bool) {
	switch {
	case f.Again:
		return Flaky, "it passed when it ran again on the same commit", false
	case f.Late:
		return Infrastructure, "it ran again, and did not finish in time", false
	case f.Gone:
		return Infrastructure, "GitHub shows it no more", false
	case f.Conclusion == cancelled:
		return Infrastructure, "it was cancelled", false
	case Failing(f.Base) && f.Base != cancelled:
		return Before, "it fails on " + f.BaseRef + " as well", false
	case Failing(f.Start) && f.Start != cancelled && !f.WasOurs:
		if f.Base == "success" && f.Behind {
			return Before, fmt.Sprintf("it failed where the work began, and passes on %s now, which the branch is behind", f.BaseRef), true
		}
		return Before, "it failed where the work began", false
	}
	if why := Outside(f.Output); why != "" {
		return Infrastructure, why, false
	}
	if line := fetchFailed(f.Log); line != "" && f.Tests == 0 {
		return Infrastructure, "a download failed: " + line, false
	}
	return Ours, "it fails on this commit", false
}

// lastLines limits the search for a failed download to a log's end. Retried failures are further up.
const lastLines = 15

// fetches match common tools' reports of a failed network or server. A missing resource (404) may be the work's
// mistake.
var fetches = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		// curl, lib/strerror.c.
		regexp.MustCompile(`^curl: \((5|6|7|28|35|52|56)\) `),
		// git, transport and http.c.
		regexp.MustCompile(`^fatal: unable to access '[^']*': (Could not resolve host|Failed to connect|Connection timed out|The requested URL returned error: 5\d\d)`),
		// npm, lib/utils/error-message.js: node's network errors.
		regexp.MustCompile(`^npm (error|ERR!) (code|errno) (ECONNRESET|ECONNREFUSED|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|E50[0-4])$`),
		// go, the module proxy.
		regexp.MustCompile(`^(go: .{1,300}: )?(Get|reading) "?https://(proxy|sum)\.golang\.org/.{1,300}: (dial tcp|net/http: TLS handshake timeout|5\d\d )`),
		// pip, _internal/cli.
		regexp.MustCompile(`^ERROR: Could not install packages due to an OSError: HTTPS?ConnectionPool\(`),
		// apt.
		regexp.MustCompile(`^(E|Err|W): (Failed to fetch .{1,300}  (5\d\d |Could not connect|Connection (failed|timed out))|Temporary failure resolving)`),
		// docker: the registry's limit (docs.docker.com, "Docker Hub pull usage and limits") or outage.
		regexp.MustCompile(`^(docker: )?Error response from daemon: (toomanyrequests: |Get "https://[^"]{1,200}": (dial tcp|net/http: TLS handshake timeout|context deadline exceeded))`),
	}
})

// fetchFailed returns a line near a log's end that reports a failed download; empty for none.
func fetchFailed(log []string) string {
	for _, line := range log[max(0, len(log)-lastLines):] {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "##[error]"), "Error: ")
		if slices.ContainsFunc(fetches(), func(re *regexp.Regexp) bool { return re.MatchString(line) }) {
			return clipped(line, maxSentence)
		}
	}
	return ""
}
