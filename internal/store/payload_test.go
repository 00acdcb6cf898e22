package store

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestAPayloadIsReadAsItWasStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "piece")
		payload := bytes.Repeat(piece, rapid.IntRange(0, 20).Draw(t, "times"))
		if rapid.Bool().Draw(t, "marked") {
			payload = append(bytes.Clone(packed), payload...)
		}
		stored := pack(payload)
		if got, err := unpack(stored); err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("%x became %x, %v", payload, got, err)
		}
	})
}

func TestAPayloadOfGitHubIsStoredSmaller(t *testing.T) {
	payload := bytes.Repeat([]byte(`{"url":"https://api.github.com/repos/octo/cat/issues/1"},`), 100)
	if stored := pack(payload); len(stored) > len(payload)/4 {
		t.Errorf("%d bytes are stored as %d", len(payload), len(stored))
	}
}

func TestAPayloadFromBeforeCompressionIsReadAsItIs(t *testing.T) {
	for _, payload := range [][]byte{nil, {}, []byte("{}"), []byte(`{"action":"created"}`)} {
		if got, err := unpack(payload); err != nil || !bytes.Equal(got, payload) {
			t.Errorf("%q is read as %q, %v", payload, got, err)
		}
	}
}

func TestADamagedPayloadIsAnError(t *testing.T) {
	stored := pack(bytes.Repeat([]byte("0123456789"), 100))
	if got, err := unpack(stored[:len(stored)-1]); err == nil {
		t.Errorf("a cut payload is read as %q", got)
	}
}
