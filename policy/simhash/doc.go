// Package simhash computes fingerprints of texts: a 64-bit SimHash over sequences of three words, without text that
// differs between equal attempts. Similar texts differ in few bits. A fast scanner gives the same result as the
// definition by regular expressions.
//
//	shingle.go    fingerprints, similarity, hashes of words
//	normalise.go  the removed text, classes of bytes
//	failure.go    fingerprints of failures and stack traces
//	scan.go       the one-pass scanner
package simhash
