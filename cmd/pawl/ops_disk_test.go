package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// The statement is that of docs/operations.md.
func TestReadyzTellsTheTruthOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("", "")
	disk := t.TempDir()
	testrig.SmallDisk(t, disk, 8)
	file := r.File()
	text, err := os.ReadFile(file)
	r.Must(err)
	r.Must(os.WriteFile(file, []byte(strings.Replace(string(text), "sqlite:pawl.db", "sqlite:"+disk+"/pawl.db", 1)), 0o600))
	r.StartWith(file)
	r.Await("a server that is ready", func() bool { code, _ := r.Ready(); return code == http.StatusOK })
	filler, err := os.Create(filepath.Join(disk, "filler"))
	r.Must(err)
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	r.Must(filler.Close())
	body := []byte(`{"zen": "Keep it logically awesome."}`)
	sent, stored := 0, 0
	send := func() int {
		sent++
		got, _ := r.Hook(body, map[string]string{"X-GitHub-Delivery": fmt.Sprintf("00000000-0000-4000-8000-%012d", sent)})
		if got == http.StatusOK {
			stored++
		}
		return got
	}
	for send() != http.StatusServiceUnavailable { // what is left of the log's pages is used up first
	}
	r.Await("a server that is not ready", func() bool {
		code, said := r.Ready()
		return code == http.StatusServiceUnavailable && !said.Part(t, "database").OK
	})
	if n := r.Metric(`pawl_healthy{part="database"}`); n != 0 {
		t.Errorf("the metric says %v of the database, want 0", n)
	}
	if got := send(); got != http.StatusServiceUnavailable {
		t.Errorf("answered %d while not ready, want 503", got)
	}
	r.Must(os.Remove(filler.Name()))
	if code, said := r.Ready(); code != http.StatusOK {
		t.Errorf("%d %+v with room again, want ready", code, said)
	}
	if got := send(); got != http.StatusOK {
		t.Errorf("answered %d with room again, want 200", got)
	}
	if ok, refused := r.Metric(`pawl_webhooks_total{code="200"}`), r.Metric(`pawl_webhooks_total{code="503"}`); int(ok) < stored || int(refused) < 2 {
		t.Errorf("the metrics count %v stored and %v refused, want at least %d and 2", ok, refused, stored)
	}
}
