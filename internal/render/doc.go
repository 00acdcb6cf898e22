// Package render makes outside text harmless for every output: check runs, comments, pull request descriptions, pages,
// terminals and logs. It also formats numbers, times and durations.
//
// Every function is pure: the same text gives the same bytes. Outside text reaches Pawl's outputs only through this
// package.
//
//	removed characters                        policy.Invisible
//	removed terminal sequences                clean.go, escapes
//	cutting long texts                        clean.go, Line, Block, Excerpt
//	forged markers                            clean.go, marker
//	words that GitHub turns into links        markdown.go, telling
//	addresses that become links               markdown.go, URL
//	titles of commits and pull requests       subject.go
//	times, durations, counts and prices       number.go
package render
