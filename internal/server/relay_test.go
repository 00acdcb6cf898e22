package server

import (
	"bytes"
	"os"
	"testing"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/testcert"
)

// A renewal replaces two files, one after the other.
func TestCertificateIsRenewedWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	cert, key := testcert.Write(t, dir)
	c := &certificate{certFile: cert, keyFile: key, log: zerolog.Nop()}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	serves := func(want []byte) bool {
		pair, err := c.get(nil)
		return err == nil && bytes.Equal(pair.Certificate[0], want)
	}
	first := c.last.Load().Certificate[0]
	newCert, newKey := testcert.Write(t, t.TempDir())
	for _, file := range []struct{ from, to string }{{newCert, cert}, {newKey, key}} {
		if !serves(first) {
			t.Error("the first certificate does not serve before the renewal is complete")
		}
		if err := os.Rename(file.from, file.to); err != nil {
			t.Fatal(err)
		}
	}
	if serves(first) {
		t.Error("the first certificate serves after the renewal")
	}
}
