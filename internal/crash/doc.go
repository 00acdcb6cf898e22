// Package crash names the points at which tests kill Pawl. Between two points, Pawl makes a change that the next
// process must find.
//
// In an ordinary build Point does nothing and is inlined away. Built with the tag crashpoints, a process obeys these
// environment variables:
//
//	PAWL_CRASH_AT=pushed:2        SIGKILL itself when it passes "pushed" the second time
//	PAWL_PAUSE_AT=push_begun      SIGSTOP itself when it first passes "push_begun"
//	PAWL_CRASH_RANDOM=7,0.01      SIGKILL itself at any point, with this seed and probability
//	PAWL_CRASH_CLOCK=40s          run the clock 40 s ahead
//
// Such a build is only for tests: anyone who sets its environment can kill it.
//
//	the points                            git grep crash.Point
//	their effect in a build for tests     on.go
//	invariants after any death            crashtest/judge.go
package crash
