// Package testreport reads the output of test runners and compilers: failed tests with their texts, and how many passed.
// The output is hostile, of any length and possibly incomplete. Everything kept is bounded, and reading never fails.
// A test's name is the same in each run.
//
//	question                                          file
//	which runners are tried, in which order           rules.go, runners
//	how much is kept of a long output                 testreport.go, maxFailing
//	which of two reports of one run counts            testreport.go, sameRun
//	how is a runner read by a table of rules          rules.go, ruled; such as mocha.go
//	totals of runners without their own reader        summary.go
//	which words of runners count as passed, failed    words.go
//	labels before each line (turbo, CI, logs)         prefix.go
//	colours and control sequences are removed         internal/render, Clean
//	what is cut from a name to keep it stable         text.go, stableName
//	where does the text of a failure end              text.go, block
//	go test, also -json; errors of go build, go vet   go.go
//	pytest                                            pytest.go
//	cargo test, errors of rustc                       cargo.go
//	unittest, Django                                  pytest.go
//	Jest, Vitest                                      javascript.go
//	Mocha                                             mocha.go
//	TAP, node --test, Test::More, prove               tap.go
//	JUnit XML, and why no library reads it            junit.go
//	which JUnit files are read                        verify.go, Watch
//	verify commands compared with the base            verify.go, Verify
package testreport
