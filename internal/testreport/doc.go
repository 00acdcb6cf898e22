// Package testreport reads the output of test runners and compilers: failed tests with their texts, and counts. The
// output is hostile, of any length and possibly incomplete. Everything kept is bounded, and reading never fails. A
// test's name is the same in each run.
//
//	testreport.go  Reader, Report, limits (maxFailing), two reports of one run (sameRun)
//	rules.go       the runners in order; readers as tables of rules
//	go.go, pytest.go, cargo.go, javascript.go, mocha.go, tap.go, junit.go
//	               one reader per runner; pytest.go also reads unittest and Django
//	summary.go     totals of other runners; words.go: their words
//	prefix.go      labels before each line (turbo, CI, logs)
//	text.go        stable names, texts of failures
//	verify.go      verify commands compared with the base (Verify); JUnit files (Watch)
package testreport
