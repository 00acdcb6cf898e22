// Package secret finds secrets in texts and takes them out: tokens and keys whose form says what they are, and the
// values that Pawl itself holds or gives to an attempt, as they are and as base64, hexadecimal and URLs write them. A
// value that is encrypted, split or rearranged is not recognised.
//
//	which forms of tokens and keys are known        forms.go
//	which writings of a known value are recognised  values.go, writings
//	how is a known secret kept out of a stream      mask.go, MaskReader
package secret
