// Package testtool serves the tool run_tests to a coding agent over the Model Context Protocol: rung 4, by which an
// agent runs the repository's verify commands itself before it finishes.
//
//	question                                             file
//	what may a spec say, and how does the server end      testtool.go
//	what is a call allowed, and where is it logged        tool.go
//	what does the agent read of the result                testtool.go, answer
package testtool
