// Package checkrun renders everything that Pawl writes on GitHub: its check runs, the status comment,
// the block in a pull request's description and the answers to commands.
//
// Every function is pure: the same View gives the same bytes. Every string in a View may be hostile. Such strings appear
// only as inline code, in fenced blocks, or as plain words. So no string can mention a user, refer to an issue, link,
// load a picture, close a block or forge one of Pawl's markers. Package render escapes them.
//
//	checkrun.go   View (the input), the buttons, the limits of length
//	run.go        the check runs pawl and pawl/config; titles and conclusions
//	verdicts.go   the check runs pawl/severity and pawl/stagnation
//	lead.go       the first lines of a check run or status comment
//	attempts.go   the table of attempts, and the folded details
//	comment.go    the status comment, the answers to commands, the block in a pull request
//	watch.go      watched pull requests
package checkrun
