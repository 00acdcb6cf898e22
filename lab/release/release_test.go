package main

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
)

// TestReleaseIsReproducible builds and checks a release for this machine twice, in different folders.
func TestReleaseIsReproducible(t *testing.T) {
	needs.All(t, "two builds of a release")
	platform := []string{runtime.GOOS + "/" + runtime.GOARCH}
	var sums [2]string
	for i := range sums {
		out := t.TempDir()
		if err := run(out, "", platform); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{sumsName, "image/index.json"} {
			text, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			sums[i] += string(text)
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds differ: first\n%s\nthen\n%s", sums[0], sums[1])
	}
}

func TestTagMustMatchTheChartsVersion(t *testing.T) {
	r := &release{src: t.TempDir(), out: t.TempDir()}
	if err := r.read("v99.0.0"); err == nil {
		t.Errorf("the tag v99.0.0 was accepted for version %s", r.version)
	}
	if err := r.read("v" + r.version); err != nil {
		t.Error(err)
	}
}
