package feedback

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Class is what another check's failure means for the work.
type Class string

const (
	// Ours is caused by the work: the agent gets it.
	Ours Class = "ours"
	// Before also fails without the work; no agent gets it.
	Before Class = "was there before"
	// Flaky passed when it ran again on the same commit.
	Flaky Class = "flaky"
	// Infrastructure is a failure of the machine, the account or the network.
	Infrastructure Class = "infrastructure"
)

// Failing reports whether a check's conclusion is red. A check that was skipped or waits for a user is not.
func Failing(conclusion string) bool {
	return slices.Contains([]string{"failure", "timed_out", cancelled}, conclusion)
}

const cancelled = "cancelled"

// Failure is another check that failed on the last commit of the work. Start and Base are the same check's
// conclusions on the commit that the work began at and on the current base; empty if it did not run there, or still
// runs.
type Failure struct {
	Conclusion, Start, Base string
	BaseRef                 string
	Behind                  bool     // the base has commits that the head lacks
	WasOurs                 bool     // it was Ours on an earlier commit
	Again                   bool     // it later passed on the same commit
	Gone                    bool     // GitHub no longer shows it
	Said                    string   // the check's output as Outside reads it
	Log                     []string // the last lines of the failed step
	Tests                   int      // how many failing tests the log names
}

// Classify returns the class of a failure, and why. update says that the base has fixed it and that the head lacks
// the fix.
func Classify(f Failure) (class Class, reason string, update bool) {
	switch {
	case f.Again:
		return Flaky, "it passed when it ran again on the same commit", false
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
	if why := Outside(f.Said); why != "" {
		return Infrastructure, why, false
	}
	if line := fetchFailed(f.Log); line != "" && f.Tests == 0 {
		return Infrastructure, "a download failed: " + line, false
	}
	return Ours, "it fails on Pawl's commit", false
}

// lastLines is how many of a log's last lines may report a failed download: a failure that was retried is further
// up.
const lastLines = 15

// fetches match the lines with which common tools report a failed network or server. A missing resource (404) does
// not count: it may be the work's own mistake.
var fetches = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		// curl, lib/strerror.c: could not resolve, connect, or was cut off.
		regexp.MustCompile(`^curl: \((5|6|7|28|35|52|56)\) `),
		// git, transport and http.c.
		regexp.MustCompile(`^fatal: unable to access '[^']*': (Could not resolve host|Failed to connect|Connection timed out|The requested URL returned error: 5\d\d)`),
		// npm, lib/utils/error-message.js: codes of node's network errors.
		regexp.MustCompile(`^npm (error|ERR!) (code|errno) (ECONNRESET|ECONNREFUSED|ETIMEDOUT|ENOTFOUND|EAI_AGAIN|E50[0-4])$`),
		// go, the module proxy.
		regexp.MustCompile(`^(go: .{1,300}: )?(Get|reading) "?https://(proxy|sum)\.golang\.org/.{1,300}: (dial tcp|net/http: TLS handshake timeout|5\d\d )`),
		// pip, _internal/cli: the network below requests.
		regexp.MustCompile(`^ERROR: Could not install packages due to an OSError: HTTPS?ConnectionPool\(`),
		// apt.
		regexp.MustCompile(`^(E|Err|W): (Failed to fetch .{1,300}  (5\d\d |Could not connect|Connection (failed|timed out))|Temporary failure resolving)`),
		// docker, the registry's limit (docs.docker.com, "Docker Hub pull usage and limits") and its absence.
		regexp.MustCompile(`^(docker: )?Error response from daemon: (toomanyrequests: |Get "https://[^"]{1,200}": (dial tcp|net/http: TLS handshake timeout|context deadline exceeded))`),
	}
})

// fetchFailed is a line near a log's end that reports a failed download; empty for none.
func fetchFailed(log []string) string {
	for _, line := range log[max(0, len(log)-lastLines):] {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "##[error]"), "Error: ")
		if slices.ContainsFunc(fetches(), func(re *regexp.Regexp) bool { return re.MatchString(line) }) {
			return clipped(line, maxSentence)
		}
	}
	return ""
}
