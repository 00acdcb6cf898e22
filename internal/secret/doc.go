// Package secret finds and removes secrets in texts: tokens and keys with a known form, and values that Pawl holds or
// gives to an attempt, including their base64, hexadecimal and URL encodings. It does not recognise encrypted, split or
// rearranged values.
//
//	forms.go   known forms of tokens and keys
//	values.go  known values and their encodings
//	mask.go    a known secret in a stream (MaskReader)
package secret
