// Package git runs the real git executable for Pawl: a bare cache for each repository, a fresh checkout for each
// attempt, and commits and pushes that nothing in the checkout can influence.
//
// The host never runs git in a .git directory that an agent could write to. In an experiment without this rule, nine of
// eleven settings (hooks, fsmonitor, filters and so on) made git start a program. Flags could not disable them all. So
// every checkout has two git directories. The agent gets a throw-away .git inside the checkout, which the host never
// reads. Only the host uses the other one, outside the checkout.
//
//	command.go    running git: settings, environment, kinds of errors
//	cache.go      the bare caches; mend.go deletes damaged caches
//	remote.go     URLs, tokens, pushes
//	workspace.go  checkouts: creation, size limits, removal
//	history.go    the part of a branch's history that a checkout gets
//	survey.go     checks before a tree is written
//	snapshot.go   which files a commit includes
//	filter.go     files with Git filters, such as Git LFS
//	protected.go  files that are withheld from agents or restored
//	commit.go     commits and merges without hooks; the diff of an attempt
//	added.go      lines added by an attempt
package git
