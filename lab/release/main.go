// Release builds and checks a tag's release (pack.go, check.go). The release has an archive and a bill of materials for
// each platform. It also has the chart, checksums, and an OCI layout of the image that contains only the program.
// Release needs no daemon and no secret, and no network except the Go module proxy. The same commit gives the same
// bytes. .ci/release runs it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The exact version pins the tool, as in .ci/lint.
const billTool = "github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0"

func main() {
	out := flag.String("out", "../dist/release", "the folder to write, which is emptied first")
	platforms := flag.String("platforms", "linux/amd64 linux/arm64", "what to build for")
	tag := flag.String("tag", "", "the tag that is released; it must be the chart's version")
	flag.Parse()
	if err := run(*out, *tag, strings.Fields(*platforms)); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(out, tag string, platforms []string) error {
	src, err := os.MkdirTemp("", "pawl-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(src)
	r := &release{src: src, out: out, platforms: platforms}
	if err := r.read(tag); err != nil {
		return err
	}
	if err := r.build(); err != nil {
		return err
	}
	return r.check()
}

type release struct {
	src       string // the commit's files
	out       string
	version   string // without the leading v
	commit    string
	at        time.Time // the commit's time, for every file
	platforms []string  // such as linux/amd64
}

// name returns the file name of a platform's archive and bill of materials, without the extension.
func (r *release) name(platform string) string {
	return filepath.Join(r.out, "pawl-"+strings.ReplaceAll(platform, "/", "-"))
}

func (r *release) chart() string { return filepath.Join(r.out, "pawl-"+r.version+".tgz") }

func (r *release) layout() string { return filepath.Join(r.out, "image") }

var chartVersion = regexp.MustCompile(`(?m)^version: (\S+)\nappVersion: (\S+)$`)

// read reads the files of HEAD and the chart's version.
func (r *release) read(tag string) error {
	head, err := output(".", "git", "show", "--no-patch", "--format=%H %ct", "HEAD")
	if err != nil {
		return err
	}
	commit, seconds, _ := strings.Cut(head, " ")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("read the time of commit %s: %w", commit, err)
	}
	r.commit, r.at = commit, time.Unix(unix, 0).UTC()
	root, err := output(".", "git", "rev-parse", "--show-toplevel")
	if err != nil {
		return err
	}
	archive := filepath.Join(r.src, "commit.tar")
	if _, err := output(root, "git", "archive", "--output", archive, commit); err != nil {
		return err
	}
	if _, err := output(r.src, "tar", "-xf", archive); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(r.src, "config/deploy/helm/pawl/Chart.yaml"))
	if err != nil {
		return err
	}
	found := chartVersion.FindSubmatch(text)
	if found == nil || string(found[1]) != string(found[2]) {
		return errors.New("the chart must have one version in version and appVersion")
	}
	r.version = string(found[1])
	if tag != "" && tag != "v"+r.version {
		return fmt.Errorf("the tag is %s, but the chart's version is %s: first change Chart.yaml and the files that repeat its version", tag, r.version)
	}
	return nil
}

func (r *release) build() error {
	if err := os.RemoveAll(r.out); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	var programs []program
	for _, platform := range r.platforms {
		p, err := r.compile(platform)
		if err != nil {
			return err
		}
		if err := r.archive(p); err != nil {
			return err
		}
		programs = append(programs, p)
	}
	if err := r.image(programs); err != nil {
		return err
	}
	if err := r.packChart(); err != nil {
		return err
	}
	return r.sum()
}

type program struct {
	platform string
	data     []byte
}

// compile builds the program and writes its bill of materials.
func (r *release) compile(platform string) (program, error) {
	goos, arch, _ := strings.Cut(platform, "/")
	path := filepath.Join(r.src, "pawl-"+goos+"-"+arch)
	flags := fmt.Sprintf("-s -w -X main.version=v%s -X main.commit=%s", r.version, r.commit)
	build := []string{
		"env", "CGO_ENABLED=0", "GOFLAGS=", "GOAMD64=v1", "GOARM64=v8.0", "GOOS=" + goos, "GOARCH=" + arch,
		"go", "build", "-trimpath", "-buildvcs=false", "-ldflags", flags, "-o", path, "./cmd/pawl",
	}
	if _, err := output(r.src, build...); err != nil {
		return program{}, err
	}
	bill, err := filepath.Abs(r.name(platform) + ".cdx.json")
	if err != nil {
		return program{}, err
	}
	// A serial number and a time would be different in every run.
	bom := []string{"go", "run", billTool, "bin", "-json", "-noserial", "-notimestamp", "-version", "v" + r.version, "-output", bill, path}
	if _, err := output(r.src, bom...); err != nil {
		return program{}, err
	}
	data, err := os.ReadFile(path)
	return program{platform, data}, err
}

// output runs a command in a folder and returns its trimmed output.
func output(dir string, command ...string) (string, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(command, " "), err, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
}
