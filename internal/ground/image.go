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
	"sync"
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
	maxImage    = 16 << 30 // bytes of one, unpacked; the largest of common tool chains have 5 GB
	maxFiles    = 1_000_000
	maxConfig   = 1 << 20        // bytes
	keptImages  = 10             // beside those in use
	inUse       = 25 * time.Hour // after an image's last use: no attempt lasts longer than a day
	spareBytes  = 1 << 30        // of the disk, which no image takes
	resolveEach = 24 * time.Hour
	resolveTime = time.Minute
	pullTime    = 30 * time.Minute
)

// Images pulls images from registries and unpacks them into a folder. The zero value lacks the folder.
type Images struct {
	Dir        string   // nobody else writes there
	Registries []string // the hosts that may be asked; nobody else is
	Now        func() time.Time

	pulls sync.Map // digests, with a place for one puller each
}

// Image is an image that is unpacked.
type Image struct {
	Root string   `json:"-"` // its files
	Env  []string `json:"env"`
}

// Digest is what an image's name stands for now, as a name with the digest. It is asked for once a day. While the
// registry cannot be asked, what it said before counts, if that image is there.
func (s *Images) Digest(ctx context.Context, ref string) (string, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", fmt.Errorf("%q is not the name of an image: write it like node:22", ref)
	}
	var known struct {
		Digest string
		At     time.Time
	}
	kept := filepath.Join(s.Dir, "names", strings.ReplaceAll(parsed.Name(), "/", "+"))
	if data, err := os.ReadFile(kept); err == nil && json.Unmarshal(data, &known) == nil {
		if age := s.Now().Sub(known.At); age >= 0 && age < resolveEach {
			return known.Digest, nil
		}
	}
	asking, cancel := context.WithTimeout(ctx, resolveTime)
	defer cancel()
	hash := v1.Hash{}
	image, err := remote.Image(parsed, s.options(asking)...)
	if err == nil {
		hash, err = image.Digest()
	}
	if err != nil {
		if _, gone := unpacked(s.dir(known.Digest)); gone == nil && ctx.Err() == nil {
			return known.Digest, nil
		}
		return "", s.explain(ctx, ref, err)
	}
	known.Digest, known.At = parsed.Context().Digest(hash.String()).Name(), s.Now()
	data, err := json.Marshal(known)
	return known.Digest, errors.Join(err, os.MkdirAll(filepath.Dir(kept), 0o700), os.WriteFile(kept+".part", data, 0o600), os.Rename(kept+".part", kept))
}

// dir is where the image of a digest is unpacked.
func (s *Images) dir(digest string) string {
	_, hex, _ := strings.Cut(digest, "@sha256:")
	return filepath.Join(s.Dir, cmp.Or(hex, "none"))
}

// unpacked is the image in a folder.
func unpacked(dir string) (image Image, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "image.json"))
	if err == nil {
		err = json.Unmarshal(data, &image)
	}
	image.Root = filepath.Join(dir, "root")
	return image, err
}

// Pull unpacks the image of a digest, unless it is there.
func (s *Images) Pull(ctx context.Context, digest string) (image Image, err error) {
	dir := s.dir(digest)
	parsed, err := name.NewDigest(digest)
	if err != nil {
		return image, err
	}
	place, _ := s.pulls.LoadOrStore(digest, make(chan struct{}, 1))
	select {
	case place.(chan struct{}) <- struct{}{}:
		defer func() { <-place.(chan struct{}) }()
	case <-ctx.Done():
		return image, context.Cause(ctx)
	}
	if image, err = unpacked(dir); err == nil {
		return image, os.Chtimes(dir, time.Time{}, s.Now())
	}
	if err := errors.Join(os.MkdirAll(s.Dir, 0o700), s.evict()); err != nil {
		return image, err
	}
	part, err := os.MkdirTemp(s.Dir, "part-")
	if err != nil {
		return image, err
	}
	defer os.RemoveAll(part)
	pulling, cancel := context.WithTimeout(ctx, pullTime)
	defer cancel()
	if err := s.pull(pulling, parsed, part); err != nil {
		return image, s.explain(ctx, digest, err)
	}
	if err := os.Rename(part, dir); err != nil && !errors.Is(err, syscall.ENOTEMPTY) && !errors.Is(err, syscall.EEXIST) { // another server's is as good
		return image, err
	}
	return unpacked(dir)
}

// pull unpacks an image into an empty folder.
func (s *Images) pull(ctx context.Context, digest name.Digest, dir string) error {
	image, err := remote.Image(digest, s.options(ctx)...)
	if err != nil {
		return err
	}
	manifest, err := image.Manifest()
	if err != nil || manifest.Config.Size < 0 || manifest.Config.Size > maxConfig {
		return cmp.Or(err, errors.New("its configuration is too large"))
	}
	config, err := image.ConfigFile()
	if err != nil {
		return err
	}
	if config.OS != "linux" || config.Architecture != runtime.GOARCH {
		return fmt.Errorf("it is for %s/%s, and this server needs linux/%s", config.OS, config.Architecture, runtime.GOARCH)
	}
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	var disk unix.Statfs_t
	if err := unix.Statfs(dir, &disk); err != nil {
		return err
	}
	root := filepath.Join(dir, "root")
	if err := os.Mkdir(root, 0o755); err != nil {
		return err
	}
	if err := unpack(root, layers, min(maxImage, int64(disk.Bavail)*disk.Bsize-spareBytes)); err != nil {
		return err
	}
	data, err := json.Marshal(Image{Env: config.Config.Env})
	return errors.Join(err, os.WriteFile(filepath.Join(dir, "image.json"), data, 0o600))
}

// evict removes what nobody has used for a day, but for the latest few.
func (s *Images) evict() (err error) {
	all, err := filepath.Glob(filepath.Join(s.Dir, "[^n]*")) // not the names
	used := map[string]time.Time{}
	for _, dir := range all {
		if info, err := os.Stat(dir); err == nil {
			used[dir] = info.ModTime()
		}
	}
	slices.SortFunc(all, func(a, b string) int { return used[b].Compare(used[a]) })
	for i, dir := range all {
		if _, broken := unpacked(dir); s.Now().Sub(used[dir]) > inUse && (broken != nil || i >= keptImages) {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}
	return err
}

func (s *Images) options(ctx context.Context) []remote.Option {
	ask := http.DefaultTransport.(*http.Transport).Clone()
	ask.ResponseHeaderTimeout = 30 * time.Second
	ask.DisableKeepAlives = true // a pull is seldom
	platform := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	return []remote.Option{remote.WithContext(ctx), remote.WithTransport(named{ask, hosts(s.Registries)}), remote.WithPlatform(platform)}
}

// hosts are those that are asked for the images of registries.
func hosts(registries []string) map[string]bool {
	all := map[string]bool{}
	for _, host := range registries {
		if r, err := name.NewRegistry(host); err == nil {
			all[r.RegistryStr()] = true
			if r.RegistryStr() == name.DefaultRegistry { // which has another host let everybody in
				all["auth.docker.io"] = true
			}
		}
	}
	return all
}

// named asks only hosts that the operator named, also where a registry sends elsewhere.
type named struct {
	http.RoundTripper
	hosts map[string]bool
}

func (n named) RoundTrip(r *http.Request) (*http.Response, error) {
	if !n.hosts[strings.ToLower(r.URL.Host)] {
		return nil, fmt.Errorf("%s is not among images.registries: the operator can add it there", r.URL.Host)
	}
	return n.RoundTripper.RoundTrip(r)
}

// explain says what a person can do about an image that is not to be had.
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
		err = fmt.Errorf("there is no room for it in %s: make room there", s.Dir)
	}
	return fmt.Errorf("image %s: %w", ref, err)
}
