package feedback

import (
	"slices"
	"strings"
	"testing"
)

func TestEachFailingCheckHasOneOfFourClasses(t *testing.T) {
	const lost = ".github:1: The hosted runner lost communication with the server."
	log := func(lines ...string) []string { return lines }
	for name, tc := range map[string]struct {
		f      Failure
		class  Class
		reason string
		update bool
	}{
		"nothing else explains it":              {Failure{Conclusion: "failure", Start: "success", Base: "success"}, Ours, "fails on this commit", false},
		"it did not run anywhere else":          {Failure{Conclusion: "failure"}, Ours, "", false},
		"it took too long":                      {Failure{Conclusion: "timed_out"}, Ours, "", false},
		"the base is red":                       {Failure{Conclusion: "failure", Base: "failure", BaseRef: "main"}, Before, "it fails on main as well", false},
		"the base is red, and it was ours once": {Failure{Conclusion: "failure", Base: "failure", WasOurs: true}, Before, "", false},
		"the base took too long":                {Failure{Conclusion: "failure", Base: "timed_out"}, Before, "", false},
		"the base was cancelled":                {Failure{Conclusion: "failure", Base: "cancelled"}, Ours, "", false},
		"it was red before our push":            {Failure{Conclusion: "failure", Start: "failure"}, Before, "it failed where the work began", false},
		"and was ours since":                    {Failure{Conclusion: "failure", Start: "failure", WasOurs: true}, Ours, "", false},
		"the base mended it":                    {Failure{Conclusion: "failure", Start: "failure", Base: "success", BaseRef: "main", Behind: true}, Before, "passes on main now, which the branch is behind", true},
		"the base mended it, and we have that":  {Failure{Conclusion: "failure", Start: "failure", Base: "success", BaseRef: "main"}, Before, "it failed where the work began", false},
		"it passed when it ran again":           {Failure{Again: true, Conclusion: "failure"}, Flaky, "passed when it ran again on the same commit", false},
		"it was cancelled":                      {Failure{Conclusion: "cancelled"}, Infrastructure, "it was cancelled", false},
		"GitHub shows it no more":               {Failure{Gone: true}, Infrastructure, "no more", false},
		"the runner was lost":                   {Failure{Conclusion: "failure", Output: lost}, Infrastructure, "infrastructure: The hosted runner lost communication", false},
		"the bill was not paid":                 {Failure{Conclusion: "failure", Output: "The job was not started because your account is locked due to a billing issue."}, Infrastructure, "billing: ", false},
		"the runner's disk was full":            {Failure{Conclusion: "failure", Output: ".github:1: No space left on device"}, Infrastructure, "No space left", false},
		"a test's disk was full":                {Failure{Conclusion: "failure", Output: "a_test.go:3: No space left on device"}, Ours, "", false},
		"the module proxy did not answer": {Failure{Conclusion: "failure", Log: log(`go: example.com/x@v1.0.0: Get "https://proxy.golang.org/example.com/x/@v/v1.0.0.mod": dial tcp: lookup proxy.golang.org: no such host`,
			"##[error]Process completed with exit code 1.")}, Infrastructure, "a download failed: go: example.com/x", false},
		"npm's network failed":               {Failure{Conclusion: "failure", Log: log("npm error code ECONNRESET", "npm error network aborted")}, Infrastructure, "npm error code ECONNRESET", false},
		"a package does not exist":           {Failure{Conclusion: "failure", Log: log("npm error code E404")}, Ours, "", false},
		"the registry's limit":               {Failure{Conclusion: "failure", Log: log("Error response from daemon: toomanyrequests: You have reached your pull rate limit.")}, Infrastructure, "toomanyrequests", false},
		"curl could not connect":             {Failure{Conclusion: "failure", Log: log("curl: (7) Failed to connect to example.com port 443")}, Infrastructure, "curl: (7)", false},
		"curl was answered 404":              {Failure{Conclusion: "failure", Log: log("curl: (22) The requested URL returned error: 404")}, Ours, "", false},
		"a test printed it and failed":       {Failure{Conclusion: "failure", Tests: 1, Log: log("curl: (7) Failed to connect")}, Ours, "", false},
		"a program quotes it":                {Failure{Conclusion: "failure", Log: log("    want: curl: (7) Failed to connect")}, Ours, "", false},
		"it was tried again and went on":     {Failure{Conclusion: "failure", Log: append(log("curl: (7) Failed to connect"), slices.Repeat(log("compiling"), lastLines)...)}, Ours, "", false},
		"what is red before comes first":     {Failure{Conclusion: "failure", Base: "failure", Output: lost}, Before, "", false},
		"a cancelled one needs nothing more": {Failure{Conclusion: "cancelled", Base: "failure"}, Infrastructure, "", false},
	} {
		class, reason, update := Classify(tc.f)
		if class != tc.class || !strings.Contains(reason, tc.reason) || reason == "" || update != tc.update {
			t.Errorf("%s: %s (%s), update %v; want %s (…%s…), update %v", name, class, reason, update, tc.class, tc.reason, tc.update)
		}
	}
}
