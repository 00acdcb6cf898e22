package ground

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// stand is a registry on loopback, and an image store that may use it.
type stand struct {
	*testing.T
	*Images
	host  string
	asked atomic.Int64
	hangs atomic.Bool // the registry does not answer
	// answer replaces the registry's handler if it is not nil.
	answer http.HandlerFunc
	now    time.Time
}

func newStand(t *testing.T) *stand {
	t.Helper()
	s := &stand{T: t, now: time.Now()}
	real := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.asked.Add(1)
		if s.hangs.Load() {
			<-r.Context().Done()
			return
		}
		if s.answer != nil {
			s.answer(w, r)
			return
		}
		real.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.host = strings.TrimPrefix(server.URL, "http://")
	s.Images = OpenImages(filepath.Join(t.TempDir(), "images"), []string{s.host}, os.RemoveAll, func() time.Time { return s.now })
	return s
}

// file is an entry of a layer.
type file struct {
	tar.Header
	text string
}

func regular(name, text string) file {
	return file{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(text))}, text}
}

func entry(kind byte, name, link string) file {
	return file{tar.Header{Typeflag: kind, Name: name, Linkname: link, Mode: 0o755}, ""}
}

func layer(t *testing.T, files ...file) v1.Layer {
	t.Helper()
	var text bytes.Buffer
	out := tar.NewWriter(&text)
	for _, f := range files {
		if err := out.WriteHeader(&f.Header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(out, f.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := out.Flush(); err != nil { // the content may be shorter than the declared size
		t.Log(err)
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text.Bytes())), nil })
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// push builds an image from layers and pushes it to the registry.
func (s *stand) push(ref string, layers ...v1.Layer) string {
	s.Helper()
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		s.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		s.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Env = []string{"PATH=/tools:/bin", "TOOL=1"}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		s.Fatal(err)
	}
	return s.put(ref, image)
}

func (s *stand) put(ref string, image v1.Image) string {
	s.Helper()
	ref = s.host + "/" + ref
	parsed, err := name.ParseReference(ref)
	if err != nil {
		s.Fatal(err)
	}
	if err := remote.Write(parsed, image); err != nil {
		s.Fatal(err)
	}
	return ref
}

// digest resolves an image's name to its digest.
func (s *stand) digest(ref string) (string, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", err
	}
	return s.resolve(s.Context(), parsed)
}

func (s *stand) get(ref string) (Image, error) {
	digest, err := s.Get(s.Context(), ref, func(Image) error { return nil })
	if err != nil {
		return Image{}, err
	}
	return s.pulled(s.Context(), digest)
}

func (s *stand) pulled(ctx context.Context, digest string) (Image, error) {
	image, leave, err := s.Use(ctx, digest)
	if err == nil {
		leave()
	}
	return image, err
}

// tree lists the contents of a folder: files with mode and text, links with target.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		read := func(path string) (string, error) { data, err := os.ReadFile(path); return string(data), err }
		if d.Type() == fs.ModeSymlink {
			read = os.Readlink
		}
		text, err := read(path)
		all[strings.TrimPrefix(path, dir+"/")] = fmt.Sprintf("%s %s", info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestImageLayersAreStacked(t *testing.T) {
	s := newStand(t)
	setuid := regular("/bin/su", "su")
	setuid.Mode = 0o4755
	ref := s.push("base:1",
		layer(t, regular("./usr/bin/a", "old"), regular("usr/bin/b", "below"), regular("etc/gone", "x"), regular("opt/below/x", "x"), regular("srv/file", "x"),
			entry(tar.TypeSymlink, "bin", "usr/bin"), entry(tar.TypeSymlink, "etc/passwd", "/etc/shadow"), entry(tar.TypeChar, "dev/null", "")),
		layer(t, setuid, regular("usr/bin/a", "new"), entry(tar.TypeLink, "usr/bin/c", "usr/bin/a"), regular("etc/.wh.gone", ""),
			regular("opt/kept/x", "of this layer"), regular("opt/.wh..wh..opq", ""), regular("opt/later", "too"),
			entry(tar.TypeDir, "srv/file", ""), regular("srv/file/in", "a folder now"), regular(".wh..wh.plnk", "")))
	image, err := s.get(ref)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"usr/bin/a": "-rw-r--r-- new", "usr/bin/b": "-rw-r--r-- below", "usr/bin/c": "-rw-r--r-- new", "usr/bin/su": "-rwxr-xr-x su",
		"bin": "Lrwxrwxrwx usr/bin", "etc/passwd": "Lrwxrwxrwx /etc/shadow", "opt/kept/x": "-rw-r--r-- of this layer", "opt/later": "-rw-r--r-- too",
		"srv/file/in": "-rw-r--r-- a folder now",
	}
	if diff := cmp.Diff(want, tree(t, image.Root)); diff != "" {
		t.Errorf("unpacked (-want +got):\n%s", diff)
	}
	if want := []string{"PATH=/tools:/bin", "TOOL=1"}; !slices.Equal(image.Env, want) {
		t.Errorf("variables %q", image.Env)
	}
}

func TestHostileImageCannotReachTheHost(t *testing.T) {
	s := newStand(t)
	outside := t.TempDir()
	secret := filepath.Join(outside, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	huge := file{tar.Header{Typeflag: tar.TypeReg, Name: "huge", Size: 1 << 50}, ""}
	up := strings.Repeat("../", 20)
	for name, c := range map[string]struct {
		files []file
		want  string
	}{
		"a path that leads up":        {[]file{regular(up+outside+"/x", "x")}, "points outside the image"},
		"up from within":              {[]file{regular("usr/"+up+outside+"/x", "x")}, "points outside the image"},
		"a link and a file behind it": {[]file{entry(tar.TypeSymlink, "a", outside), regular("a/x", "x")}, "escapes"},
		"a link up and a file":        {[]file{entry(tar.TypeSymlink, "a", up+outside), regular("a/x", "x")}, "escapes"},
		"a folder behind a link":      {[]file{entry(tar.TypeSymlink, "a", outside), entry(tar.TypeDir, "a/x/y", "")}, "escapes"},
		"a hard link out":             {[]file{entry(tar.TypeLink, "a", up+secret)}, "points outside the image"},
		"a hard link through a link":  {[]file{entry(tar.TypeSymlink, "a", outside), entry(tar.TypeLink, "b", "a/secret")}, "escapes"},
		"a whiteout behind a link":    {[]file{entry(tar.TypeSymlink, "a", outside), regular("a/.wh.secret", "")}, "escapes"},
		"opaque behind a link":        {[]file{entry(tar.TypeSymlink, "a", outside), regular("a/.wh..wh..opq", "")}, "escapes"},
		"a huge size":                 {[]file{huge}, "not enough disk space"},
		"a file that replaces a link": {[]file{entry(tar.TypeSymlink, "a", secret), regular("a", "x")}, ""},
		"permissions of a link":       {[]file{entry(tar.TypeSymlink, "a", outside), entry(tar.TypeDir, "a", "")}, ""},
	} {
		ref := s.push("hostile:1", layer(t, c.files...))
		s.now = s.now.Add(48 * time.Hour) // so that the registry is asked again
		image, err := s.get(ref)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if _, gone := os.Stat(image.Root); c.want != "" && image.Root != "" && gone == nil {
			t.Errorf("%s: part of the image was kept", name)
		}
		if diff := cmp.Diff(map[string]string{"secret": "-rw------- secret"}, tree(t, outside)); diff != "" {
			t.Fatalf("%s: outside:\n%s", name, diff)
		}
	}
	entries, err := filepath.Glob(filepath.Join(s.dir, "*/*/*.part-*"))
	if err != nil || len(entries) > 0 {
		t.Errorf("left behind: %v %v", entries, err)
	}
}

func TestTooManyEntriesAreRefused(t *testing.T) {
	root, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	u := unpacker{root: root, room: 100, files: 2}
	err = u.layer(layer(t, regular("a", "x"), regular(".wh.b", ""), regular("c", "x")))
	if err == nil || !strings.Contains(err.Error(), "entries") {
		t.Errorf("%v", err)
	}
}

func TestImageIsRequestedOnceADay(t *testing.T) {
	s := newStand(t)
	ref := s.push("tool:1", layer(t, regular("version", "1")))
	first, err := s.get(ref)
	if err != nil {
		t.Fatal(err)
	}
	s.now = s.now.Add(23 * time.Hour)
	s.push("tool:1", layer(t, regular("version", "2")))
	asked := s.asked.Load()
	if again, err := s.get(ref); err != nil || again.Root != first.Root || s.asked.Load() != asked {
		t.Errorf("within a day: %+v %v, asked %d times", again, err, s.asked.Load()-asked)
	}
	s.now = s.now.Add(2 * time.Hour)
	later, err := s.get(ref)
	if err != nil || tree(t, later.Root)["version"] != "-rw-r--r-- 2" {
		t.Errorf("a day later: %+v %v", later, err)
	}
	if got := tree(t, first.Root)["version"]; got != "-rw-r--r-- 1" {
		t.Errorf("the previous image, which an attempt may use: %q", got)
	}
}

func TestLocalImageNeedsNoRegistry(t *testing.T) {
	s := newStand(t)
	ref := s.push("tool:1", layer(t, regular("version", "1")))
	first, err := s.get(ref)
	if err != nil {
		t.Fatal(err)
	}
	s.answer = func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }
	s.now = s.now.Add(48 * time.Hour)
	if again, err := s.get(ref); err != nil || again.Root != first.Root {
		t.Errorf("%+v %v", again, err)
	}
	if _, err := s.get(s.host + "/other:1"); err == nil || !strings.Contains(err.Error(), "has no public image of this name (403)") {
		t.Errorf("another image: %v", err)
	}
}

func TestUnfitImageIsRequestedAgain(t *testing.T) {
	s := newStand(t)
	ref := s.push("tool:1", layer(t, regular("a", "x")))
	unfit := errors.New("it has no shell")
	if _, err := s.Get(t.Context(), ref, func(Image) error { return unfit }); !errors.Is(err, unfit) {
		t.Errorf("%v", err)
	}
	s.push("tool:1", layer(t, regular("b", "x")))
	if image, err := s.get(ref); err != nil || len(tree(t, image.Root)["b"]) == 0 {
		t.Errorf("after the image was corrected: %v", err)
	}
}

func TestHangingRegistryTimesOut(t *testing.T) {
	s := newStand(t)
	ref := s.push("tools:1", layer(t, regular("a", "one")))
	digest, err := s.digest(ref)
	if err != nil {
		t.Fatal(err)
	}
	s.resolving, s.pulling = 20*time.Millisecond, 20*time.Millisecond
	s.hangs.Store(true)
	for name, ask := range map[string]func() (Image, error){
		"the name":  func() (Image, error) { return s.get(ref) },
		"the image": func() (Image, error) { return s.pulled(t.Context(), digest) },
	} {
		if _, err := ask(); err == nil || !strings.Contains(err.Error(), "the registry was too slow") {
			t.Errorf("%s: %v, want the error about the slow registry", name, err)
		}
	}
	s.hangs.Store(false)
	s.resolving, s.pulling = time.Minute, time.Minute
	if _, err := s.get(ref); err != nil {
		t.Errorf("once it answers again: %v", err)
	}
}

func TestOnlyConfiguredRegistriesAreContacted(t *testing.T) {
	s := newStand(t)
	ref := s.push("tool:1", layer(t, regular("a", "x")))
	other := newStand(t)
	foreign := other.push("tool:1", layer(t, regular("a", "x")))
	before := other.asked.Load()
	if _, err := s.get(foreign); err == nil || !strings.Contains(err.Error(), other.host+" is not in images.registries") {
		t.Errorf("another registry: %v", err)
	}
	digest, err := s.digest(ref)
	if err != nil {
		t.Fatal(err)
	}
	s.answer = func(w http.ResponseWriter, r *http.Request) { // a redirect
		http.Redirect(w, r, "http://"+other.host+r.URL.Path, http.StatusTemporaryRedirect)
	}
	if _, err := s.pulled(t.Context(), digest); err == nil || !strings.Contains(err.Error(), other.host+" is not in images.registries") {
		t.Errorf("a redirect: %v", err)
	}
	s.answer = func(w http.ResponseWriter, r *http.Request) { // another sign-in host
		w.Header().Set("WWW-Authenticate", `Bearer realm="http://`+other.host+`/token",service="x"`)
		w.WriteHeader(http.StatusUnauthorized)
	}
	if _, err := s.pulled(t.Context(), digest); err == nil {
		t.Errorf("another sign-in host: %v", err)
	}
	if n := other.asked.Load() - before; n > 0 {
		t.Errorf("a host that is not configured was contacted %d times", n)
	}
	for host, want := range map[string]bool{"auth.docker.io": true, "index.docker.io": true, "ghcr.io": false} {
		if (allowed{registries: []string{"docker.io"}}).permits(host) != want {
			t.Errorf("with docker.io, %s is contacted: %v", host, !want)
		}
	}
}

func TestContentWithAnotherDigestIsRefused(t *testing.T) {
	s := newStand(t)
	ref := s.push("tool:1", layer(t, regular("a", "original")))
	digest, err := s.digest(ref)
	if err != nil {
		t.Fatal(err)
	}
	var other bytes.Buffer
	zip := gzip.NewWriter(&other)
	out := tar.NewWriter(zip)
	h := regular("a", "tampered").Header
	if err := errors.Join(out.WriteHeader(&h), func() error { _, err := io.WriteString(out, "tampered"); return err }(), out.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"blobs", "manifests"} {
		pass := newProxy(t, s, kind, other.Bytes())
		s.registries = append(s.registries, pass)
		elsewhere := strings.Replace(digest, s.host, pass, 1)
		if image, err := s.pulled(t.Context(), elsewhere); err == nil {
			t.Errorf("%s with other content were accepted: %v", kind, tree(t, image.Root))
		}
	}
	if _, err := s.pulled(t.Context(), digest[:len(digest)-4]+"0000"); err == nil {
		t.Error("an unknown digest was found")
	}
	if _, err := s.pulled(t.Context(), digest); err != nil {
		t.Errorf("the original: %v", err)
	}
}

// newProxy starts a registry that forwards to another one and replaces the answers of one kind.
func newProxy(t *testing.T, s *stand, kind string, answer []byte) (host string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		from, err := http.Get("http://" + s.host + r.URL.Path)
		if err != nil {
			t.Error(err)
			return
		}
		defer from.Body.Close()
		text, err := io.ReadAll(from.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", from.Header.Get("Content-Type"))
		if strings.Contains(r.URL.Path, "/"+kind+"/") && (kind == "manifests" || bytes.HasPrefix(text, []byte{0x1f, 0x8b})) {
			text = answer
		}
		w.WriteHeader(from.StatusCode)
		_, _ = w.Write(text)
	}))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func TestImageForAnotherPlatformIsRefused(t *testing.T) {
	s := newStand(t)
	image, err := mutate.ConfigFile(mutate.MediaType(empty.Image, types.OCIManifestSchema1), &v1.ConfigFile{OS: "linux", Architecture: "s390x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.get(s.put("other:1", image)); err == nil || !strings.Contains(err.Error(), "it is for linux/s390x") {
		t.Errorf("%v", err)
	}
}

func TestOldestUnusedImagesAreDeleted(t *testing.T) {
	s := newStand(t)
	s.Store.now = time.Now // the clock that sets the times of files
	var roots []string
	var held func()
	for n := range keptImages + 3 {
		digest, err := s.digest(s.push(fmt.Sprintf("tool:%d", n), layer(t, regular("n", fmt.Sprint(n)))))
		if err != nil {
			t.Fatal(err)
		}
		image, leave, err := s.Use(t.Context(), digest)
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			held = leave
		} else {
			leave()
		}
		roots = append(roots, image.Root)
	}
	var left []int
	for n, root := range roots {
		if _, err := os.Stat(root); err == nil {
			left = append(left, n)
		}
	}
	want := []int{0} // in use
	for n := 4; n < keptImages+3; n++ {
		want = append(want, n)
	}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("left (-want +got):\n%s", diff)
	}
	held()
}

func TestConcurrentPullsDownloadOnce(t *testing.T) {
	s := newStand(t)
	ref := s.push("tool:1", layer(t, regular("a", "x")))
	digest, err := s.digest(ref)
	if err != nil {
		t.Fatal(err)
	}
	before := s.asked.Load()
	if _, err := s.pulled(t.Context(), digest); err != nil {
		t.Fatal(err)
	}
	once := s.asked.Load() - before
	if err := os.RemoveAll(s.dir); err != nil {
		t.Fatal(err)
	}
	before = s.asked.Load()
	errs := make(chan error)
	for range 5 {
		go func() {
			_, err := s.pulled(t.Context(), digest)
			errs <- err
		}()
	}
	for range 5 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := s.asked.Load() - before; n != once {
		t.Errorf("five pulls made %d requests, one pull %d", n, once)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.pulled(ctx, strings.Replace(digest, "a", "b", 1)); !errors.Is(err, context.Canceled) && err == nil {
		t.Error("a cancelled pull succeeded")
	}
}
