// Package git runs the real git executable for Pawl: a bare cache for each repository, a fresh checkout for each
// attempt, and commits and pushes that nothing in the checkout can influence.
//
// Its rule: git on the host never runs in a .git that an agent could write. Nine of eleven settings that make git
// start a program (hooks, fsmonitor, filters and so on) worked when it did, and flags against them were not enough.
// So every checkout has two git directories: a throw-away .git inside for the agent, which the host never reads,
// and one outside that only the host uses.
//
//	question                                                     file
//	how is git started, with which settings and environment      command.go
//	what is fetched into the cache, how is it kept sound         cache.go
//	how does a token reach git, which URLs are allowed           remote.go
//	what is a checkout, how large may it get, how is it removed  workspace.go
//	what is looked at before a tree is taken                     survey.go
//	what becomes part of the commit, what is left out            snapshot.go
//	which files are withheld from the agent and put back         protected.go
//	how is a commit or merge made without hooks                  commit.go
//	what did an attempt change                                   commit.go (Diff)
//	which lines did it add                                       added.go
//	when is a push refused, why never forced                     remote.go (Push)
//	which errors can a caller tell apart                         command.go (commandError)
package git
