// Package crash names the moments at which a test kills Pawl: between any two of
// them something has been done that the next process has to find as it is.
//
// In an ordinary build Point does nothing and is inlined away. Built with the tag
// crashpoints, a process obeys these variables of its environment:
//
//	PAWL_CRASH_AT=pushed:2        SIGKILL itself when it passes "pushed" the second time
//	PAWL_PAUSE_AT=push_begun      SIGSTOP itself there, the first time
//	PAWL_CRASH_RANDOM=7,0.01      SIGKILL itself at any point, with this seed and probability
//	PAWL_CRASH_CLOCK=40s          have a clock that is ahead by so much
//
// Such a build is for tests only: whoever sets its environment can end it.
//
//	question                                                     file
//	which moments are there                                      git grep crash.Point
//	what happens at them, in a build for tests                   on.go
//	and in an ordinary one                                       off.go
//	what holds wherever a server is killed                       crashtest/judge.go
package crash
