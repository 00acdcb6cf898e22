// Package git runs the real git executable for Pawl: a bare cache for each repository, a fresh checkout for each
// attempt, and commits and pushes that nothing in the checkout can influence.
//
// Git on the host never runs in a .git that an agent could write. In an experiment that broke this rule, nine of eleven
// settings that make git start a program (hooks, fsmonitor, filters and so on) worked, and flags could not disable them
// all. Therefore every checkout has two git directories: a throw-away .git inside for the agent, which the host never
// reads, and one outside that only the host uses.
//
//	question                                                     file
//	how is git started, with which settings and environment      command.go
//	what is fetched into the cache, how is it kept sound         cache.go
//	how does a token reach git, which URLs are allowed           remote.go
//	what is a checkout, how large may it get, how is it removed  workspace.go
//	what is checked before a tree is written                     survey.go
//	what becomes part of the commit, what is left out            snapshot.go
//	which files are withheld from the agent and put back         protected.go
//	how is a commit or merge made without hooks                  commit.go
//	what did an attempt change                                   commit.go (Diff)
//	which lines did it add                                       added.go
//	when is a push refused, why never forced                     remote.go (Push)
//	which errors can a caller distinguish                        command.go (Kinds of errors)
package git
