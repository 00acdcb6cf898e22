// Package git runs the real git executable for Pawl: a bare cache for each repository, a fresh checkout for each
// attempt, and commits and pushes that nothing in the checkout can influence.
//
// Git on the host never runs in a .git that an agent could write. In an experiment that broke this rule, nine of eleven
// settings that make git start a program (hooks, fsmonitor, filters and so on) worked, and flags could not disable them
// all. Therefore every checkout has two git directories: a throw-away .git inside for the agent, which the host never
// reads, and one outside that only the host uses.
//
//	command.go    running git: settings, environment, kinds of errors
//	cache.go      the bare caches; mend.go deletes damaged caches
//	remote.go     URLs, tokens, pushes
//	workspace.go  checkouts: creation, size limits, removal
//	history.go    the part of a branch's history that a checkout gets
//	survey.go     checks before a tree is written
//	snapshot.go   what belongs to a commit, and what is left out
//	filter.go     files with Git filters, such as Git LFS
//	protected.go  files that agents do not get, and that are restored
//	commit.go     commits and merges without hooks; the diff of an attempt
//	added.go      the lines that an attempt added
package git
