// Package testreport reads what test runners and compilers print, as they print it: which tests failed, with what
// text, and how many passed. The output is hostile, of any length and may be half of one: everything kept of it is
// bounded, and reading never fails. Names are made so that the same test has the same name in the next run.
//
//	question                                          file
//	which runners are tried, in which order           rules.go, runners
//	how much is kept of a long output                 testreport.go, maxFailing
//	which of two reports of one run counts            testreport.go, sameRun
//	how is a runner read by a table of rules          rules.go, ruled; such as mocha.go
//	totals of runners without a reader of their own   summary.go
//	which words of runners count as passed, failed    words.go
//	what stands before each line (turbo, CI, logs)    prefix.go
//	how are colours and control sequences taken out   internal/render, Clean
//	what is cut from a name, so that it stays         text.go, stableName
//	where does the text of a failure end              text.go, block
//	go test, also -json; errors of go build, go vet   go.go
//	pytest                                            pytest.go
//	cargo test, errors of rustc                       cargo.go
//	unittest, Django                                  pytest.go
//	Jest, Vitest                                      javascript.go
//	Mocha                                             mocha.go
//	TAP, node --test, Test::More, prove               tap.go
//	JUnit's XML, and why no library reads it          junit.go
//	which files of JUnit's are read                   verify.go, Watch
//	what do verify commands come to beside the base   verify.go, Verify
package testreport
