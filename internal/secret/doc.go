// Package secret finds and removes secrets in texts: tokens and keys that their form identifies, and values that Pawl holds
// or gives to an attempt, also as base64, hexadecimal and in URLs. It does not recognise encrypted, split or rearranged
// values.
//
//	which forms of tokens and keys are known        forms.go
//	which encodings of a known value are recognised values.go, writings
//	how is a known secret kept out of a stream      mask.go, MaskReader
package secret
