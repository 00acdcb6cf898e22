// Package testtool serves the tool run_tests to a coding agent over the Model Context Protocol: the fourth
// rung, by which an agent runs the repository's verify commands itself before it says that it is done.
//
//	question                                             file
//	what may a spec say, and how does the server end      testtool.go
//	what is a call allowed, and where is it written down  tool.go
//	what does the agent read of the result                testtool.go, answer
package testtool
