// Package testreport reads the output of test runners and compilers: failed tests with their texts, and counts. The
// output may be hostile, incomplete and of any length. So all kept data is limited, and reading never fails. A test has
// the same name in each run.
//
//	testreport.go  Reader, Report, limits, duplicate reports of one run (sameRun)
//	rules.go       the list of runners; readers as tables of rules
//	go.go, pytest.go, cargo.go, javascript.go, mocha.go, tap.go, junit.go
//	               one reader per runner; pytest.go also reads unittest and Django
//	summary.go     totals of other runners; words.go has the words in them
//	prefix.go      labels before each line (turbo, CI, logs)
//	text.go        stable names, texts of failures
//	verify.go      verify commands compared with the base (Verify); JUnit files (Watch)
package testreport
