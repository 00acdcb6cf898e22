// Package simhash is the fingerprint of texts: a SimHash of 64 bits over sequences of three words, after what
// differs between two equal attempts was removed. Equal texts have equal fingerprints, and similar ones
// differ in few bits. Its definition is five regular expressions, a list of words and a hash; the code is a
// scanner that agrees with them and takes their way only where it cannot tell.
//
//	question                                                     file
//	what is a fingerprint, and how similar are two               shingle.go
//	what is removed, as the definition says it                   normalise.go
//	what more is removed from failures                           failure.go
//	where does a failure happen, by its stack traces             failure.go
//	how is the same found in one pass, and when is it not        scan.go
//	how do words become bits                                     shingle.go
//	which bytes are digits, hexadecimal, words, spaces           normalise.go, class
package simhash
