package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// smallDisk puts a file system of a size in MiB at a folder, which only root may do.
func smallDisk(t *testing.T, dir string, size int) {
	t.Helper()
	if err := syscall.Mount("pawl-test", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Skipf("a small file system cannot be mounted here (%v); it takes root", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
}

// The statement is that of docs/operations.md.
func TestReadyzTellsTheTruthOnAFullDisk(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("", "")
	disk := t.TempDir()
	smallDisk(t, disk, 8)
	file := r.file()
	text, err := os.ReadFile(file)
	r.must(err)
	r.must(os.WriteFile(file, []byte(strings.Replace(string(text), "sqlite:pawl.db", "sqlite:"+disk+"/pawl.db", 1)), 0o600))
	r.startWith(file)
	r.await("a server that is ready", func() bool { code, _ := r.ready(); return code == http.StatusOK })
	filler, err := os.Create(filepath.Join(disk, "filler"))
	r.must(err)
	for err == nil {
		_, err = filler.Write(make([]byte, 4096))
	}
	r.must(filler.Close())
	body := []byte(`{"zen": "Keep it logically awesome."}`)
	sent, stored := 0, 0
	send := func() int {
		sent++
		got, _ := r.hook(body, map[string]string{"X-GitHub-Delivery": fmt.Sprintf("00000000-0000-4000-8000-%012d", sent)})
		if got == http.StatusOK {
			stored++
		}
		return got
	}
	for send() != http.StatusServiceUnavailable { // what is left of the log's pages is used up first
	}
	r.await("a server that is not ready", func() bool {
		code, said := r.ready()
		return code == http.StatusServiceUnavailable && !said.part(t, "database").OK
	})
	if n := r.metric(`pawl_healthy{part="database"}`); n != 0 {
		t.Errorf("the metric says %v of the database, want 0", n)
	}
	if got := send(); got != http.StatusServiceUnavailable {
		t.Errorf("answered %d while not ready, want 503", got)
	}
	r.must(os.Remove(filler.Name()))
	if code, said := r.ready(); code != http.StatusOK {
		t.Errorf("%d %+v with room again, want ready", code, said)
	}
	if got := send(); got != http.StatusOK {
		t.Errorf("answered %d with room again, want 200", got)
	}
	if ok, refused := r.metric(`pawl_webhooks_total{code="200"}`), r.metric(`pawl_webhooks_total{code="503"}`); int(ok) < stored || int(refused) < 2 {
		t.Errorf("the metrics count %v stored and %v refused, want at least %d and 2", ok, refused, stored)
	}
}
