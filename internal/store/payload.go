package store

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// packed begins a payload that is stored compressed (S2 blocks). No JSON begins
// with its first byte, so payloads that were stored before any were compressed
// are read as they are.
var packed = []byte("\xffs2\x00")

// pack compresses a payload for storing. Most of what GitHub sends is addresses
// that repeat: 14 KB become 6, in 20 µs, and SQLite writes each byte twice, to its
// log and at the checkpoint. What does not get smaller is stored as it is.
func pack(payload []byte) []byte {
	if bytes.HasPrefix(payload, packed) || len(payload) >= len(packed)+64 {
		small := make([]byte, len(packed)+s2.MaxEncodedLen(len(payload)))
		small = small[:copy(small, packed)+len(s2.Encode(small[len(packed):], payload))]
		if len(small) < len(payload) || bytes.HasPrefix(payload, packed) {
			return bytes.Clone(small)
		}
	}
	return payload
}

// unpack is the inverse of pack.
func unpack(stored []byte) ([]byte, error) {
	small, ok := bytes.CutPrefix(stored, packed)
	if !ok {
		return stored, nil
	}
	payload, err := s2.Decode(nil, small)
	if err != nil {
		return nil, fmt.Errorf("its stored payload is damaged: %w", err)
	}
	return payload, nil
}
