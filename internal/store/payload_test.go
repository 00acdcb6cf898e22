package store

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/klauspost/compress/s2"
	"pgregory.net/rapid"
)

func TestAPayloadIsReadAsItWasStored(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "piece")
		payload := bytes.Repeat(piece, rapid.IntRange(0, 20).Draw(t, "times"))
		if rapid.Bool().Draw(t, "like one that was packed before") {
			payload = append(bytes.Clone(oldHead), payload...)
		}
		stored := pack(payload)
		if got, err := unpack(stored); err != nil || !bytes.Equal(got, payload) || len(stored) > len(payload)+1 {
			t.Fatalf("%x became %x, %v", payload, got, err)
		}
	})
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
	sum := sha256.Sum256(oldWords)
	if got := hex.EncodeToString(sum[:]); got != "54fd7b1b48ddc93883e90bb1637f905c5cd97ed19f38c7f36ccaec8cdfc5c39a" {
		t.Errorf("its SHA-256 is %s; what was packed with it can be read with it only", got)
	}
}

func TestAPayloadThatWasPackedWithTheDictionaryIsRead(t *testing.T) {
	payload := strings.NewReplacer("octocat/Hello-World", "acme/widgets", "Codertocat", "ada", "3000000", "1234567").Replace(string(oldWords))
	stored := append(bytes.Clone(oldHead), s2.MakeDict(oldWords, []byte(`{"action":"`)).Encode(nil, []byte(payload))...)
	if got, err := unpack(stored); err != nil || string(got) != payload {
		t.Errorf("it is read as %.100q, %v", got, err)
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
	for _, damaged := range [][]byte{stored[:len(stored)-1], append([]byte{0x02}, stored[1:]...), []byte("\xffs3\x01{}")} {
		if got, err := unpack(damaged); err == nil {
			t.Errorf("%x is read as %q", damaged, got)
		}
	}
}
