package pawl_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent/clis"
)

// The Dockerfile must match the kinds of backends and the versions that Pawl was tested with.
func TestImageSupportsEveryAgent(t *testing.T) {
	cases := regexp.MustCompile(`(?m)^ +(\w+)\) package=(\S+) ;;`).FindAllStringSubmatch(string(read(t, "Dockerfile")), -1)
	found := map[string]string{}
	for _, m := range cases {
		found[m[1]] = m[2]
	}
	for _, kind := range config.CLIs() {
		adapter, err := clis.For(kind, "")
		if want := adapter.Version.Package + "@" + adapter.Version.Checked; err != nil || found[kind] != want {
			t.Errorf("AGENT=%s installs %q, want %q: %v", kind, found[kind], want, err)
		}
	}
	if len(found) != len(config.CLIs()) {
		t.Errorf("the image supports %v", found)
	}
}

// The test runs the release's script with a fake docker that only records its arguments.
func TestReleaseHasAnImageForEachAgent(t *testing.T) {
	bin := t.TempDir()
	log := filepath.Join(bin, "log")
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\necho \"$*\" >>"+log+"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	asked := func(args ...string) string {
		cmd := exec.Command(".ci/images", append([]string{"ghcr.io/pawlbot/pawl", "1.2.3"}, args...)...)
		cmd.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		text := string(read(t, log))
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
		return text
	}
	built, joined := asked(), asked("join")
	for _, agent := range append(config.CLIs(), "none") {
		image := "ghcr.io/pawlbot/pawl:1.2.3-" + agent
		own := image + "-" + runtime.GOARCH
		if !regexp.MustCompile(`(?m)^build --build-context build=docker-image://ghcr\.io/pawlbot/pawl:1\.2\.3 --build-arg AGENT=` + agent + ` --tag ` + own + ` \.\npush ` + own + "$").MatchString(built) {
			t.Errorf("%s is not built and pushed:\n%s", own, built)
		}
		if want := fmt.Sprintf("buildx imagetools create --tag %s --tag ghcr.io/pawlbot/pawl:latest-%s %[1]s-amd64 %[1]s-arm64\n", image, agent); !strings.Contains(joined, want) {
			t.Errorf("%s is not made:\n%s", image, joined)
		}
	}
	if n := strings.Count(joined, "\n"); n != len(config.CLIs())+1 {
		t.Errorf("%d images are made:\n%s", n, joined)
	}
	release := string(read(t, ".github/workflows/release.yml"))
	if !slices.Equal(regexp.MustCompile(`\.ci/\w+`).FindAllString(release, -1), []string{".ci/release", ".ci/images", ".ci/images", ".ci/images"}) {
		t.Error("the release runs other scripts than this test")
	}
}
