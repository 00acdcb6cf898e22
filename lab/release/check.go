package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// check reads the release's files as a user would, and prints a summary.
func (r *release) check() error {
	images, err := r.checkImage()
	if err != nil {
		return err
	}
	for _, platform := range r.platforms {
		program, err := r.checkArchive(platform)
		if err != nil {
			return err
		}
		if !bytes.Equal(program, images[platform]) {
			return fmt.Errorf("the image for %s contains another program than the archive", platform)
		}
		if err := r.checkBill(platform); err != nil {
			return err
		}
		if platform != runtime.GOOS+"/"+runtime.GOARCH {
			continue
		}
		if err := r.checkVersion(program); err != nil {
			return err
		}
	}
	return r.checkSums()
}

// unpack returns a tar's files by name.
func unpack(from io.Reader) (map[string][]byte, error) {
	files := map[string][]byte{}
	for in := tar.NewReader(from); ; {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if files[h.Name], err = io.ReadAll(in); err != nil {
			return nil, err
		}
	}
}

// checkImage validates the image layout and all digests, and returns the program for each platform.
func (r *release) checkImage() (map[string][]byte, error) {
	index, err := layout.ImageIndexFromPath(r.layout())
	if err != nil {
		return nil, err
	}
	if err := validate.Index(index); err != nil {
		return nil, fmt.Errorf("the image is not valid: %w", err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	programs := map[string][]byte{}
	for _, m := range manifest.Manifests {
		image, err := index.Image(m.Digest)
		if err != nil {
			return nil, err
		}
		if programs[m.Platform.String()], err = imageFile(image); err != nil {
			return nil, err
		}
	}
	digest, err := index.Digest()
	fmt.Println("image", digest)
	return programs, err
}

func imageFile(image v1.Image) ([]byte, error) {
	content := mutate.Extract(image)
	defer content.Close()
	files, err := unpack(content)
	return files[imageProgram], err
}

// checkArchive checks that a platform's archive is complete, and returns its program.
func (r *release) checkArchive(platform string) ([]byte, error) {
	name := r.name(platform) + ".tar.gz"
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	files, err := unpack(plain)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for _, want := range append([]string{"pawl"}, otherFiles...) {
		if len(files[path.Base(want)]) == 0 {
			return nil, fmt.Errorf("%s has no %s", name, path.Base(want))
		}
	}
	return files["pawl"], nil
}

// checkBill checks the version and the modules in a bill of materials.
func (r *release) checkBill(platform string) error {
	name := r.name(platform) + ".cdx.json"
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var bill struct {
		Format     string `json:"bomFormat"`
		Metadata   struct{ Component struct{ Version string } }
		Components []struct{ Name string }
	}
	if err := json.Unmarshal(data, &bill); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	version, modules := bill.Metadata.Component.Version, len(bill.Components)
	if bill.Format != "CycloneDX" || version != "v"+r.version || modules == 0 {
		return fmt.Errorf("%s: %s of %q with %d modules", name, bill.Format, version, modules)
	}
	fmt.Printf("%s: %d modules\n", filepath.Base(name), modules)
	return nil
}

func (r *release) checkVersion(program []byte) error {
	at := filepath.Join(r.src, "released")
	if err := os.WriteFile(at, program, 0o755); err != nil {
		return err
	}
	printed, err := output(".", at, "version")
	if err != nil {
		return err
	}
	if !strings.Contains(printed, "v"+r.version) || !strings.Contains(printed, r.commit) {
		return fmt.Errorf("pawl version prints %q, want v%s and %s", printed, r.version, r.commit)
	}
	fmt.Println(printed)
	return nil
}

func (r *release) checkSums() error {
	want, err := r.sums()
	if err != nil {
		return err
	}
	got, err := os.ReadFile(filepath.Join(r.out, sumsName))
	if err != nil {
		return err
	}
	if string(got) != want {
		return fmt.Errorf("%s does not match the files", sumsName)
	}
	fmt.Print(want)
	return nil
}
