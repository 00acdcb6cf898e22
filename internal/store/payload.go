package store

import (
	"bytes"
	_ "embed"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// The first byte of a stored payload says how it is stored; before there was one it came as JSON.
const (
	formatPlain = 0x00
	formatS2    = 0x01
)

// oldHead begins what earlier versions packed with these words as a dictionary, which no upgrade may lose.
var oldHead = []byte("\xffs2\x01")

//go:embed payload_words.json
var oldWords []byte

// pack makes a payload smaller, in less time than that saves: SQLite writes each byte twice.
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
