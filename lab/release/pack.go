package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// entry is a file of an archive, owned by root, with the commit's date.
type entry struct {
	name string
	mode int64
	data []byte
}

func (r *release) tar(entries []entry) ([]byte, error) {
	var out bytes.Buffer
	to := tar.NewWriter(&out)
	for _, e := range entries {
		h := &tar.Header{Name: e.name, Mode: e.mode, Size: int64(len(e.data)), ModTime: r.at, Format: tar.FormatUSTAR}
		if err := to.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := to.Write(e.data); err != nil {
			return nil, err
		}
	}
	err := to.Close()
	return out.Bytes(), err
}

func (r *release) tarGzip(to string, entries []entry) error {
	plain, err := r.tar(entries)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	packed := gzip.NewWriter(&out)
	if _, err := packed.Write(plain); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return os.WriteFile(to, out.Bytes(), 0o644)
}

// otherFiles lists an archive's files, except the program.
var otherFiles = []string{"CHANGELOG.md", "LICENSE", "README.md", "config/deploy/pawl.service", "config/example.yml"}

func (r *release) archive(p program) error {
	entries := []entry{{"pawl", 0o755, p.data}}
	for _, name := range otherFiles {
		data, err := os.ReadFile(filepath.Join(r.src, name))
		if err != nil {
			return err
		}
		entries = append(entries, entry{path.Base(name), 0o644, data})
	}
	return r.tarGzip(r.name(p.platform)+".tar.gz", entries)
}

// packChart packs the chart like helm package. All files get the commit's date.
func (r *release) packChart() error {
	files := os.DirFS(filepath.Join(r.src, "config/deploy/helm"))
	var entries []entry
	err := fs.WalkDir(files, "pawl", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		entries = append(entries, entry{name, 0o644, data})
		return err
	})
	if err != nil {
		return err
	}
	return r.tarGzip(r.chart(), entries)
}

// imageProgram is the program's path in the image, for the Dockerfile.
const imageProgram = "usr/local/bin/pawl"

// image writes the image with only the program, for all platforms. The images with agents copy it from there.
func (r *release) image(programs []program) error {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		image, err := r.imageFor(p)
		if err != nil {
			return err
		}
		platform, err := v1.ParsePlatform(p.platform)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: platform}})
	}
	_, err := layout.Write(r.layout(), index)
	return err
}

func (r *release) imageFor(p program) (v1.Image, error) {
	files, err := r.tar([]entry{{imageProgram, 0o755, p.data}})
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files)), nil },
		tarball.WithMediaType(types.OCILayer),
	)
	if err != nil {
		return nil, err
	}
	base := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	made := v1.History{Created: v1.Time{Time: r.at}, CreatedBy: ".ci/release"}
	image, err := mutate.Append(base, mutate.Addendum{Layer: layer, History: made})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture, _ = strings.Cut(p.platform, "/")
	config.Created = v1.Time{Time: r.at}
	config.Config.Entrypoint = []string{"/" + imageProgram}
	config.Config.Labels = map[string]string{
		"org.opencontainers.image.source":   "https://github.com/pawlbot/pawl",
		"org.opencontainers.image.version":  r.version,
		"org.opencontainers.image.revision": r.commit,
		"org.opencontainers.image.created":  r.at.Format(time.RFC3339),
	}
	return mutate.ConfigFile(image, config)
}

// sumsName is the file of checksums, for sha256sum. It omits the image's files, whose names are their checksums.
const sumsName = "SHA256SUMS"

// sums returns the checksums of the folder's files, one per line.
func (r *release) sums() (string, error) {
	entries, err := os.ReadDir(r.out)
	if err != nil {
		return "", err
	}
	var lines strings.Builder
	for _, e := range entries {
		if e.IsDir() || e.Name() == sumsName {
			continue
		}
		data, err := os.ReadFile(filepath.Join(r.out, e.Name()))
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&lines, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return lines.String(), nil
}

func (r *release) sum() error {
	lines, err := r.sums()
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, sumsName), []byte(lines), 0o644)
}
