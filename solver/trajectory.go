package solver

import (
	"strings"

	"github.com/pawlbot/pawl/internal/agent"
)

// Trajectory counts how an agent worked, for its grade.
type Trajectory struct {
	TestRuns int `json:"test_runs"`
	Errors   int `json:"errors"`  // calls that failed
	Retries  int `json:"retries"` // of requests to the model
	// Bytes is the size of what the agent printed.
	Bytes int64 `json:"bytes"`
}

// tracker counts a trajectory while an agent runs.
type tracker struct {
	Trajectory
	verify []string
}

// testWords begin or are part of the commands by which people run tests.
const testWords = "run_tests|go test|pytest|python -m unittest|npm test|npm run test|yarn test|pnpm test|npx jest|npx vitest|jest|vitest|cargo test|cargo nextest|make test|make check|mvn test|gradle test|gradlew test|ctest|prove|bundle exec rspec|rspec|phpunit|dotnet test|node --test|tox"

// deed takes one call into account.
func (t *tracker) deed(d agent.Deed) {
	if d.Failed {
		t.Errors++
	}
	if len(d.Edits) == 0 && t.tests(d.Wrote) {
		t.TestRuns++
	}
}

// event takes one event of the stream into account.
func (t *tracker) event(e agent.Event) {
	if e.Kind == agent.Notice && e.Text != "" {
		t.Retries++
	}
}

// tests reports whether a call runs tests: those of the repository, or what
// people run tests with.
func (t *tracker) tests(wrote string) bool {
	for _, c := range t.verify {
		if c != "" && strings.Contains(wrote, c) {
			return true
		}
	}
	for word := range strings.SplitSeq(testWords, "|") {
		if i := strings.Index(wrote, word); i >= 0 && (i == 0 || !isWord(wrote[i-1])) && (i+len(word) == len(wrote) || !isWord(wrote[i+len(word)])) {
			return true
		}
	}
	return false
}

func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}
