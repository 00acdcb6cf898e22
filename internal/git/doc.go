// Package git runs the real git executable for Pawl: a bare cache for each
// repository, a fresh checkout for each attempt, and commits and pushes that
// nothing in the checkout can influence.
//
// The rule the package exists for: git on the host never runs in a .git that
// an agent could write. Of eleven settings that make git start a program
// (hooks, fsmonitor, filters and so on) nine fired when it did, and flags
// against them were not enough. So every checkout has two git directories: a
// throw-away .git inside for the agent, which the host never reads, and one
// beside it that only the host uses.
package git
