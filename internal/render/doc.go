// Package render makes what others wrote harmless, once for every output: check runs, comments, descriptions of
// pull requests, pages, terminals and logs. It also writes numbers, times and spans as people read them.
//
// Every function is pure: the same text gives the same bytes. No output of ours
// takes a text of others in another way than through this package.
//
//	which characters are invisible and go?            policy.Invisible
//	which sequences of a terminal go?                 clean.go, escapes
//	how is a long text cut, at which end?             clean.go, Line, Block, Excerpt
//	why does nobody's comment forge a marker of ours? clean.go, marker
//	what makes a word a mention, reference or link?   markdown.go, telling
//	which addresses become links?                     markdown.go, URL
//	what of a stranger's title stands in a commit?     subject.go
//	how is a time, a span, a count, a price written?  number.go
package render
