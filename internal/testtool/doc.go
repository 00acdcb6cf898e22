// Package testtool serves the tool run_tests to a coding agent over the Model Context Protocol. An agent uses it
// (rung 4) to run the repository's verify commands before it finishes.
package testtool
