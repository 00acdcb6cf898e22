package feedback

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Class is what the failure of a check of others means for the work.
type Class string

const (
	// Ours is the work's: the agent is told.
	Ours Class = "ours"
	// Before failed without the work, too; no agent is told.
	Before Class = "was there before"
	// Flaky failed, and passed when it ran again on the same commit.
	Flaky Class = "flaky"
	// Infrastructure says nothing of the commit: the machine, the account or the network failed.
	Infrastructure Class = "infrastructure"
)

// Failing reports whether a check that concluded so is red. One that asks a person, or was skipped, is not.
func Failing(conclusion string) bool {
	return slices.Contains([]string{"failure", "timed_out", cancelled}, conclusion)
}

const cancelled = "cancelled"

// Failure is a check of others that failed on the last commit of the work, with what is known around it. Start
// and Base are what the same check concluded on the commit that the work began at and on the base as it is now;
// empty where it did not run there, or still runs.
type Failure struct {
	Conclusion, Start, Base string
	BaseRef                 string
	Behind                  bool     // the base has commits that the head lacks
	WasOurs                 bool     // it was the work's on an earlier commit
	Again                   bool     // it passed later on the same commit
	Gone                    bool     // GitHub shows it no more
	Said                    string   // what the check says, as Outside reads it
	Log                     []string // the last lines of the step that failed
	Tests                   int      // how many failing tests that log names
}

// Classify says what the failure of a check is, and why. update says that the base has mended what was broken
// before, and that the head lacks it.
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

// lastLines is how many of a log's last lines may say that a download failed: what failed first and was tried
// again stands further up.
const lastLines = 15

// fetches are the sentences with which common tools say that the network or the other side failed, each where it
// begins a line: what does not exist (404) may be the work's own mistake, and is none of them.
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

// fetchFailed is the line near a log's end that says that a download failed; empty for none.
func fetchFailed(log []string) string {
	for _, line := range log[max(0, len(log)-lastLines):] {
		line = strings.TrimPrefix(strings.TrimPrefix(line, "##[error]"), "Error: ")
		if slices.ContainsFunc(fetches(), func(re *regexp.Regexp) bool { return re.MatchString(line) }) {
			return clipped(line, maxSentence)
		}
	}
	return ""
}
