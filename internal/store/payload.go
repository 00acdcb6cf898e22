package store

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// packed begins a payload that is stored compressed: an S2 block that needs the
// dictionary. No JSON begins with its first byte, so payloads that were stored
// before any were compressed are read as they are.
var packed = []byte("\xffs2\x01")

// payloadWords is an issue_comment event about GitHub's own example repository. Most
// of a payload is names of fields and addresses, and it has nearly all of them. What
// was packed with it can be read only with it: another one needs another beginning
// of what is packed, and this one stays.
//
//go:embed payload_words.json
var payloadWords []byte

var dictionary = s2.MakeDict(payloadWords, []byte(`{"action":"`))

// pack compresses a payload for storing, in less time than the disk takes for what
// it saves: a comment's 10 KB become 1 KB, and SQLite writes each byte twice, to its
// log and at the checkpoint. What does not get smaller is stored as it is.
func pack(payload []byte) []byte {
	if bytes.HasPrefix(payload, packed) || len(payload) >= len(packed)+64 {
		small := make([]byte, len(packed)+s2.MaxEncodedLen(len(payload)))
		small = small[:copy(small, packed)+len(dictionary.Encode(small[len(packed):], payload))]
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
	payload, err := dictionary.Decode(nil, small)
	if err != nil {
		return nil, fmt.Errorf("its stored payload is damaged: %w", err)
	}
	return payload, nil
}
