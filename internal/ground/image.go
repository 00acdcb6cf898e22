package ground

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"golang.org/x/sys/unix"
)

// Bounds of images.
const (
	maxImage    = 16 << 30 // bytes of one, unpacked; the largest common tool chains have 5 GB
	maxFiles    = 1_000_000
	maxConfig   = 1 << 20 // bytes
	keptImages  = 10
	spareBytes  = 1 << 30 // of the disk, which no image uses
	resolveEach = 24 * time.Hour
	resolveTime = time.Minute
	pullTime    = 30 * time.Minute
)

// Images are unpacked images of registries, in their own store.
type Images struct {
	*Store
	registries []string
	// resolving and pulling are a registry's time to resolve a name, and to send an image.
	resolving, pulling time.Duration
}

// unpacked is the repository's name in the store of images.
const unpacked = "unpacked/sha256"

// OpenImages opens the store of images in a folder; see Open. It asks only the registries, and no other host.
func OpenImages(dir string, registries []string, remove func(dir string) error, now func() time.Time) *Images {
	s := Open(dir, remove, now)
	s.most = keptImages
	return &Images{s, registries, resolveTime, pullTime}
}

// Image is an image's system.
type Image struct {
	Root string   // read-only files
	Env  []string // NAME=value, without HOME
}

// Get pulls a name's image, which must fit, and returns its name with the digest. The name is resolved once a day.
// Without an answer from the registry the last digest counts, if that image is still stored.
func (s *Images) Get(ctx context.Context, ref string, fits func(Image) error) (digest string, err error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("%q is not an image name: write it like node:22", ref)
	}
	kept := filepath.Join(s.dir, "names", strings.ReplaceAll(parsed.Name(), "/", "+"))
	known := readResolved(kept)
	if !known.fresh(s.now()) {
		asked, err := s.resolve(ctx, parsed)
		_, leave, unpackedHere := s.Store.Use(unpacked, hexOf(known.Digest))
		leave()
		usable := unpackedHere && ctx.Err() == nil
		switch {
		case err == nil:
			known = resolved{asked, s.now()}
		case !usable:
			return "", s.explain(ctx, ref, err)
		}
	}
	image, leave, err := s.Use(ctx, known.Digest)
	defer leave()
	if err == nil {
		err = fits(image)
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(kept)) // resolved again at once
	}
	data, err := json.Marshal(known)
	return known.Digest, errors.Join(err, os.MkdirAll(filepath.Dir(kept), 0o700), os.WriteFile(kept+".part", data, 0o600), os.Rename(kept+".part", kept))
}

// resolved is a registry's answer for a name.
type resolved struct {
	Digest string // empty if unknown
	At     time.Time
}

// readResolved reads a stored answer; zero if it is missing or damaged.
func readResolved(file string) resolved {
	var known resolved
	data, err := os.ReadFile(file)
	if err != nil {
		return resolved{}
	}
	if err := json.Unmarshal(data, &known); err != nil {
		return resolved{}
	}
	return known
}

// fresh reports whether the answer still counts. One from the future was written by a wrong clock.
func (r resolved) fresh(now time.Time) bool {
	if r.Digest == "" {
		return false
	}
	age := now.Sub(r.At)
	return age >= 0 && age < resolveEach
}

func (s *Images) resolve(ctx context.Context, ref name.Reference) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.resolving)
	defer cancel()
	image, err := remote.Image(ref, s.options(ctx)...)
	if err != nil {
		return "", err
	}
	hash, err := image.Digest()
	return ref.Context().Digest(hash.String()).Name(), err
}

func hexOf(digest string) string {
	_, hex, _ := strings.Cut(digest, "@sha256:")
	return cmp.Or(hex, "none")
}

// Use pulls a digest's image, unless it is stored, and keeps it until leave is called.
func (s *Images) Use(ctx context.Context, digest string) (image Image, leave func(), err error) {
	leave = func() {}
	parsed, err := name.NewDigest(digest)
	if err != nil {
		return image, leave, err
	}
	err = s.Build(ctx, unpacked, hexOf(digest), func(Layer) bool { return false }, func(dir string) (Record, error) {
		ctx, cancel := context.WithTimeout(ctx, s.pulling)
		defer cancel()
		return s.pull(ctx, parsed, dir)
	})
	if err != nil {
		return image, leave, s.explain(ctx, digest, err)
	}
	l, leave, there := s.Store.Use(unpacked, hexOf(digest))
	if !there {
		return image, leave, fmt.Errorf("image %s was evicted at once: this server's images exceed their size limit", digest)
	}
	return Image{filepath.Join(l.dir, "root"), l.Env}, leave, nil
}

// pull unpacks an image into an empty folder.
func (s *Images) pull(ctx context.Context, digest name.Digest, dir string) (r Record, err error) {
	image, err := remote.Image(digest, s.options(ctx)...)
	if err != nil {
		return r, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return r, err
	}
	if size := manifest.Config.Size; size < 0 || size > maxConfig {
		return r, errors.New("its configuration is too large")
	}
	config, err := image.ConfigFile()
	if err != nil {
		return r, err
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		return r, fmt.Errorf("it is for %s/%s, and this server needs linux/%s", config.OS, config.Architecture, runtime.GOARCH)
	}
	layers, err := image.Layers()
	if err != nil {
		return r, err
	}
	var disk unix.Statfs_t
	root := filepath.Join(dir, "root")
	if err := errors.Join(unix.Statfs(dir, &disk), os.Mkdir(root, 0o755)); err != nil {
		return r, err
	}
	env := slices.DeleteFunc(config.Config.Env, unusable)
	free := int64(disk.Bavail)*disk.Bsize - spareBytes
	return Record{Image: digest.Name(), Env: env}, unpack(root, layers, min(maxImage, free))
}

// unusable reports whether an image's variable is malformed, or HOME, which the attempt sets.
func unusable(v string) bool {
	name, _, ok := strings.Cut(v, "=")
	if !ok || strings.ContainsRune(v, 0) {
		return true
	}
	return name == "" || name == "HOME"
}

func (s *Images) options(ctx context.Context) []remote.Option {
	ask := http.DefaultTransport.(*http.Transport).Clone()
	ask.ResponseHeaderTimeout = 30 * time.Second
	ask.DisableKeepAlives = true // pulls are rare
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(named{ask, s.registries}), remote.WithPlatform(platform)}
}

// named asks only the operator's registries, also after redirects.
type named struct {
	http.RoundTripper
	registries []string
}

// asks reports whether a host is asked. The default registry authenticates at another host.
func (n named) asks(host string) bool {
	return slices.ContainsFunc(n.registries, func(registry string) bool {
		one, err := name.NewRegistry(registry)
		switch {
		case err != nil:
			return false
		case one.RegistryStr() == host:
			return true
		}
		return one.RegistryStr() == name.DefaultRegistry && host == "auth.docker.io"
	})
}

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	if !n.asks(strings.ToLower(r.URL.Host)) {
		return nil, fmt.Errorf("%s is not among images.registries: the operator can add it there", r.URL.Host)
	}
	return n.RoundTripper.RoundTrip(r)
}

// explain gives the operator's remedy for an unavailable image.
func (s *Images) explain(ctx context.Context, ref string, err error) error {
	answer, answered := errors.AsType[*transport.Error](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case answered && slices.Contains([]int{401, 403, 404}, answer.StatusCode):
		err = fmt.Errorf("the registry shows no such image to the public (%d): look at its name and tag; Pawl signs in nowhere", answer.StatusCode)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the registry was too slow: %w", err)
	case errors.Is(err, syscall.ENOSPC):
		err = fmt.Errorf("there is no room for it in %s: make room there", s.dir)
	}
	return fmt.Errorf("image %s: %w", ref, err)
}
