package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAPayloadIsReadAsItWasStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "piece")
		payload := bytes.Repeat(piece, rapid.IntRange(0, 20).Draw(t, "times"))
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			payload = append(bytes.Clone(packed), payload...)
		case 1:
			payload = append(payload, payloadWords[rapid.IntRange(0, len(payloadWords)).Draw(t, "cut"):]...)
		}
		stored := pack(payload)
		if got, err := unpack(stored); err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("%x became %x, %v", payload, got, err)
		}
	})
}

func TestThePayloadOfAnotherRepositoryIsStoredInAnEighth(t *testing.T) {
	payload := strings.NewReplacer("octocat/Hello-World", "acme/widgets", "Codertocat", "ada", "2026-11-21", "2027-02-03", "3000000", "1234567").Replace(string(payloadWords))
	if stored := pack([]byte(payload)); len(stored) > len(payload)/8 {
		t.Errorf("%d bytes are stored as %d", len(payload), len(stored))
	}
}

func TestALargePayloadIsReadAsItWasStored(t *testing.T) {
	payload := bytes.Repeat([]byte(`{"url":"https://api.github.com/repos/octo/cat/issues/1"},`), 25<<20/57)
	stored := pack(payload)
	if got, err := unpack(stored); err != nil || !bytes.Equal(got, payload) || len(stored) > len(payload)/100 {
		t.Errorf("%d bytes, stored as %d, are read as %d, %v", len(payload), len(stored), len(got), err)
	}
}

// What was stored with a dictionary can be read only with the same.
func TestTheDictionaryStaysAsItIs(t *testing.T) {
	sum := sha256.Sum256(payloadWords)
	if got := hex.EncodeToString(sum[:]); got != "54fd7b1b48ddc93883e90bb1637f905c5cd97ed19f38c7f36ccaec8cdfc5c39a" {
		t.Errorf("its SHA-256 is %s; a dictionary of other words needs another beginning of what is packed with it", got)
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
