package store

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// The first byte of a stored payload says how it is stored. What begins as JSON can
// was stored as it came, before payloads had such a byte.
const (
	formatPlain = 0x00
	formatS2    = 0x01
)

// oldHead begins what versions before had packed, with these words as a dictionary.
// Nothing is packed so any more, and no upgrade may lose what was.
var oldHead = []byte("\xffs2\x01")

//go:embed payload_words.json
var oldWords []byte

// pack makes a payload smaller for storing, in less time than the disk takes for
// what it saves: SQLite writes each byte twice, to its log and at the checkpoint.
func pack(payload []byte) []byte {
	if len(payload) == 0 {
		return nil
	}
	small := make([]byte, 1+s2.MaxEncodedLen(len(payload)))
	small[0] = formatS2
	if n := 1 + len(s2.Encode(small[1:], payload)); n <= len(payload) {
		return bytes.Clone(small[:n])
	}
	return append([]byte{formatPlain}, payload...)
}

// unpack is the inverse of pack, also for what earlier versions stored.
func unpack(stored []byte) (payload []byte, err error) {
	if len(stored) == 0 {
		return stored, nil
	}
	switch old, isOld := bytes.CutPrefix(stored, oldHead); {
	case isOld:
		payload, err = s2.MakeDict(oldWords, []byte(`{"action":"`)).Decode(nil, old)
	case stored[0] == formatS2:
		payload, err = s2.Decode(nil, stored[1:])
	case stored[0] == formatPlain:
		return stored[1:], nil
	case stored[0] >= '\t' && stored[0] <= '~':
		return stored, nil
	default:
		err = fmt.Errorf("form %#x is none that this pawl knows", stored[0])
	}
	if err != nil {
		return nil, fmt.Errorf("its stored payload cannot be read: %w", err)
	}
	return payload, nil
}
