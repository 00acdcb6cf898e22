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

// Limits of images. Our choice, except where a comment names a measurement.
const (
	maxImage    = 16 << 30 // bytes of an unpacked image; the largest common tool chains take 5 GB
	maxFiles    = 1_000_000
	maxConfig   = 1 << 20 // bytes
	keptImages  = 10
	spareBytes  = 1 << 30 // of disk space that images leave free
	resolveEach = 24 * time.Hour
	resolveTime = time.Minute
	pullTime    = 30 * time.Minute
)

// Images stores unpacked images. Its methods may be called concurrently.
type Images struct {
	*Store
	registries []string
	// resolving and pulling limit the time to resolve a name and to pull an image.
	resolving, pulling time.Duration
}

// unpacked is the repository's name in the store of images.
const unpacked = "unpacked/sha256"

// OpenImages opens the store of images in a folder; see Open. It sends requests only to these registries.
func OpenImages(dir string, registries []string, remove func(dir string) error, now func() time.Time) *Images {
	s := Open(dir, remove, now)
	s.most = keptImages
	return &Images{s, registries, resolveTime, pullTime}
}

// Image is an unpacked image.
type Image struct {
	Root string   // read-only files
	Env  []string // NAME=value, without HOME
}

// Get pulls an image, checks it with fits, and returns its name with the digest. It resolves the name once a day. If
// the registry does not answer, it uses the last digest, provided that image is still stored.
func (s *Images) Get(ctx context.Context, ref string, fits func(Image) error) (digest string, err error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("%q is not an image name: write it like node:22", ref)
	}
	kept := filepath.Join(s.dir, "names", strings.ReplaceAll(parsed.Name(), "/", "+"))
	known := readResolved(kept)
	if !known.fresh(s.now()) {
		asked, err := s.resolve(ctx, parsed)
		_, leave, stored := s.Store.Use(unpacked, hexOf(known.Digest))
		leave()
		usable := stored && ctx.Err() == nil
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
		return "", errors.Join(err, os.RemoveAll(kept)) // the next Get resolves the name again
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

// fresh reports whether the answer is recent. A time in the future comes from a wrong clock.
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

// Use returns a digest's image, and pulls it if it is not stored. The image is not evicted until leave is called.
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
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(allowed{ask, s.registries}), remote.WithPlatform(platform)}
}

// allowed sends requests only to the operator's registries, also after redirects.
type allowed struct {
	http.RoundTripper
	registries []string
}

// permits reports whether a host may be asked. The default registry authenticates at another host.
func (n allowed) permits(host string) bool {
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

func (n allowed) RoundTrip(r *http.Request) (*http.Response, error) {
	if !n.permits(strings.ToLower(r.URL.Host)) {
		return nil, fmt.Errorf("%s is not in images.registries; the operator can add it", r.URL.Host)
	}
	return n.RoundTripper.RoundTrip(r)
}

// explain adds why an image is unavailable, and the remedy.
func (s *Images) explain(ctx context.Context, ref string, err error) error {
	answer, answered := errors.AsType[*transport.Error](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case answered && slices.Contains([]int{401, 403, 404}, answer.StatusCode):
		err = fmt.Errorf("the registry has no public image of this name (%d): check the name and the tag; Pawl does not sign in to registries", answer.StatusCode)
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("the registry was too slow: %w", err)
	case errors.Is(err, syscall.ENOSPC):
		err = fmt.Errorf("there is not enough disk space in %s: free some", s.dir)
	}
	return fmt.Errorf("image %s: %w", ref, err)
}
