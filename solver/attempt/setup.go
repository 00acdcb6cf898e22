package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/ground"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// UseLayers has attempts keep and use layers in a folder, and images beside it. Where layers cannot be mounted over each
// other, which the first use tries, they are copied.
func (e *Env) UseLayers(dir string) {
	e.Layers = ground.Open(dir, git.Remove, e.Now)
	e.Images = ground.OpenImages(ImagesIn(filepath.Dir(dir)), e.Config.Images.Registries, git.Remove, e.Now)
	if e.Sandbox.Mode() == sandbox.None {
		return
	}
	e.Layers.Overlay = sync.OnceValue(func() bool {
		err := os.MkdirAll(dir, 0o700)
		if err == nil {
			err = e.Sandbox.Overlays(context.Background(), dir)
		}
		if err != nil {
			e.Log.Info().Err(err).Msg("layers are copied, since they cannot be mounted over each other here")
		}
		return err == nil
	})
}

// ImagesIn is where the images of a data directory are.
func ImagesIn(dataDir string) string { return filepath.Join(dataDir, "images") }

// LayersIn is where the layers of a data directory are.
func LayersIn(dataDir string) string { return filepath.Join(dataDir, "layers") }

// image brings the image that the repository names, whose digest it puts into Ground.Image, or says why it is not to
// be had.
func (c *checkout) image(ctx context.Context) (*thread.Decided, error) {
	g := c.Ground
	if g.Effective.Environment.Image == "" {
		return nil, nil
	}
	run, end := c.Watch(ctx)
	defer end()
	digest, err := c.Env.Images.Get(run, g.Effective.Environment.Image, func(i ground.Image) error { return sandbox.Has(i.Root, "/bin/sh") })
	if err == nil || context.Cause(run) != nil {
		g.Image = digest
		return nil, context.Cause(run)
	}
	c.Log.Info().Err(err).Msg("the repository's image is not to be had")
	d := thread.Refuse(policy.RuleSetupFailed, "Correct environment.image in .github/pawl.yml, or ask the operator; /pawl retry tries it again.", err.Error())
	d.On = g.settings
	return d, nil
}

// errNotKept ends the building of a layer that is not worth keeping.
var errNotKept = errors.New("nothing is kept")

// lay sees that there is a layer for the repository, which attempts and verifications begin with, and names it in
// Ground.Layer. A setup that failed is refused, and is not repeated before the key changes or a person asks.
func (c *checkout) lay(ctx context.Context) (*thread.Decided, error) {
	g, setup := c.Ground, c.Ground.Effective.Environment.Setup
	at, build := g.settings, true
	if len(setup) == 0 {
		if err := c.propose(ctx); err != nil || len(g.Effective.Verify) == 0 {
			return nil, err
		}
		// What the verify commands leave is a layer where no agent wrote what ran.
		var err error
		at = g.From
		if build, err = g.cache.IsAncestor(ctx, at, g.settings); err != nil {
			return nil, err
		}
	}
	key, err := c.layerKey(ctx)
	if err != nil {
		return nil, err
	}
	if build {
		err = c.Env.Layers.Build(ctx, c.Thread.Repo(), key, c.repeats, func(dir string) (ground.Record, error) { return c.build(ctx, at, key, dir) })
		if len(setup) == 0 && err != nil && ctx.Err() == nil && !stopped(err) && g.Before != nil {
			if !errors.Is(err, errNotKept) {
				c.Log.Warn().Err(err).Msg("what the base's verification left was not kept")
			}
			err = nil
		}
	}
	l, leave, ok := c.Env.Layers.Use(c.Thread.Repo(), key)
	defer leave()
	switch {
	case err != nil || !ok && len(setup) == 0:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("layer %s: it was removed at once, since the layers of this server take too much room", key)
	case l.Failed != nil:
		refused := thread.Refuse(policy.RuleSetupFailed, "Correct environment.setup in .github/pawl.yml, or what it needs; /pawl retry runs it again.",
			fmt.Sprintf("setup failed: %s: %s", oneLine(l.Failed.Command), l.Failed.Result))
		refused.On, refused.Output = g.settings, l.Failed.Output
		return refused, nil
	}
	g.Layer = policy.Layer{Key: key, Commit: l.Commit}
	return nil, nil
}

// stopped reports whether somebody ended the work.
func stopped(err error) bool {
	return errors.Is(err, errStopped) || errors.Is(err, errClosed) || errors.Is(err, ErrRevoked)
}

// repeats reports whether a person asked to run a setup again that failed, as who runs Pawl on a folder does each time.
func (c *checkout) repeats(l ground.Layer) bool {
	f := l.Failed
	return f != nil && slices.ContainsFunc(c.State.Pending(), func(r thread.Request) bool {
		if c.State.Snapshot.URL == "" { // of a folder
			return r.MadeAt.After(l.Made)
		}
		return r.Command == "retry" && (f.Thread == c.Thread.String() && r.Seq > f.Seen || f.Thread != c.Thread.String() && r.MadeAt.After(l.Made))
	})
}

// layerKey is made of all that decides what a layer holds.
func (c *checkout) layerKey(ctx context.Context) (string, error) {
	e := c.Ground.Effective.Environment
	e.Timeout = 0
	asked, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	files, err := c.Ground.cache.Files(ctx, cmp.Or(c.Ground.settings, c.Ground.From), ground.Decides)
	return ground.Key(append(files, string(asked), c.Ground.Image, ground.Platform(), string(c.Env.Sandbox.Mode()))...), err
}

// propose looks for the usual setup of a repository that has none, for the thread's first attempt.
func (c *checkout) propose(ctx context.Context) error {
	if len(c.State.Attempts) > 0 {
		return nil
	}
	var root []string
	_, err := c.Ground.cache.Files(ctx, c.Ground.From, func(file string) bool {
		if !strings.Contains(file, "/") {
			root = append(root, file)
		}
		return false
	})
	c.Ground.Proposal = ground.Propose(root)
	return err
}

// build runs the setup over the files of a commit in an empty HOME, and the verify commands after it, which fill
// HOME's caches. What setup made is moved into the folder of the layer.
func (c *checkout) build(ctx context.Context, at, key, dir string) (r ground.Record, err error) {
	e := c.Ground.Effective.Environment
	if err := c.Env.Room(); err != nil {
		return r, err
	}
	t, err := c.trial(ctx, at, "")
	if err != nil {
		return r, err
	}
	defer t.close()
	c.Log.Info().Str("layer", key).Str("commit", at).Int("commands", len(e.Setup)).Msg("a layer is being built")
	r = ground.Record{Commit: at}
	for _, p := range e.Paths {
		if path.IsAbs(p) && len(e.Setup) > 0 {
			from := filepath.Join(dir, ground.Paths, strconv.Itoa(len(r.Paths)))
			if err := os.MkdirAll(from, 0o700); err != nil {
				return r, err
			}
			r.Paths = append(r.Paths, p)
			t.footing.folders = append(t.footing.folders, sandbox.Mount{From: from, To: p})
		}
	}
	if r.Failed, err = t.setUp(ctx, e); err != nil || r.Failed != nil {
		return r, errors.Join(err, git.Remove(filepath.Join(dir, ground.Paths)))
	}
	if len(e.Setup) > 0 {
		// What setup made is set aside as it is; the verify commands get it as they will in every verification.
		err := t.setAside(ctx, dir, func(string) bool { return true })
		if err == nil {
			err = c.foot(ctx, &t.footing, ground.At(dir, r), t.ws, t.home, false)
		}
		if err != nil {
			return r, err
		}
	}
	before, err := t.verifyBase(ctx, at, key)
	if at == c.Ground.From {
		c.Ground.Before = before
	}
	_, full, _ := c.Env.free()
	switch {
	case err != nil:
		return r, err
	case len(e.Setup) > 0:
		err = t.setAside(ctx, dir, func(file string) bool {
			return slices.ContainsFunc(e.Paths, func(p string) bool { // it is one, holds one or belongs to one
				return strings.HasPrefix(file+"/", p+"/") || strings.HasPrefix(p+"/", file+"/")
			})
		})
	case full || policy.Unable(before) != "":
		return r, errNotKept
	}
	if err := errors.Join(err, os.Rename(t.home, filepath.Join(dir, ground.Home))); err != nil {
		return r, err
	}
	c.Log.Info().Str("layer", key).Str("commit", at).Int("commands", len(e.Setup)).Msg("a layer was built")
	return r, nil
}

// setAside moves ignored files and folders of the work tree into the folder of a layer, which keeps what is there already.
func (t *trial) setAside(ctx context.Context, dir string, wanted func(file string) bool) error {
	files, err := t.ws.Ignored(ctx)
	for _, file := range files {
		to := filepath.Join(dir, ground.Work, filepath.FromSlash(file))
		if _, missing := os.Lstat(to); missing == nil || !wanted(file) {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(filepath.Join(t.ws.Dir, filepath.FromSlash(file)), to)); err != nil {
			return err
		}
	}
	return err
}

// prepare tells what runs before an attempt.
func (e *Env) prepare(what string) {
	if e.OnPrepare != nil {
		e.OnPrepare(what)
	}
}

// setUp runs the commands until one fails, with the secrets that the operator gives the repository's setup.
func (t *trial) setUp(ctx context.Context, e config.Environment) (*ground.Failure, error) {
	secrets := t.c.Config.Setup.Names(t.c.Thread.Repo())
	defer t.c.Env.prepare("")
	for _, command := range e.Setup {
		t.c.Env.prepare("setting up: " + command)
		kept := render.End{Max: maxOutput}
		report, refused, err := t.inSandbox(ctx, program{argv: []string{"/bin/sh", "-c", "exec 2>&1\n" + command}, env: secrets, most: e.Time(), allow: t.c.Ground.Effective.Network.Setup, where: "network.setup"}, &kept)
		if err != nil {
			return nil, fmt.Errorf("setup command %q: %w", command, err)
		}
		result := fmt.Sprintf("exit code %d", report.Exit.Code)
		switch {
		case report.Killed:
			result = fmt.Sprintf("not done within %s", render.Span(e.Time()))
		case report.Exit.Signal != "":
			result = "ended by " + report.Exit.Signal
		case report.Exit.Code == 0:
			continue
		}
		if report.Exit.Exceeded != "" {
			result += "; " + report.Exit.Exceeded
		}
		if len(refused) > 0 {
			result += "; refused: " + strings.Join(refused, ", ") + "; the operator can allow it in network.setup"
		}
		t.c.Log.Info().Str("command", oneLine(command)).Str("result", result).Msg("setup failed")
		said := secret.New(t.c.Env.secrets(t.c.Config, t.c.Thread, 0, config.Backend{})).Redact(kept.Lines())
		return &ground.Failure{Command: command, Result: result, Output: said, Thread: t.c.Thread.String(), Seen: t.c.State.Seq}, nil
	}
	return nil, nil
}

// footing is how somebody gets a layer, and the image that the repository names.
type footing struct {
	image    ground.Image
	overlays []sandbox.Overlay
	folders  []sandbox.Mount
	leave    func() // gives both back
}

// stand has a program find its folders, the layer and the image.
func (c *checkout) stand(spec *sandbox.Spec, f footing) {
	spec.Overlays, spec.Folders, spec.Root = f.overlays, f.folders, f.image.Root
	if c.Env.Sandbox.Mode() != sandbox.None {
		spec.DirAt, spec.HomeAt = insideWork, insideHome
	}
}

// over gives a checkout and a HOME the repository's image, and a layer where it has a key. Fresh says that the HOME is
// empty. The caller gives back what it got, also with an error.
func (c *checkout) over(ctx context.Context, key string, ws *git.Workspace, home string, fresh bool) (f footing, err error) {
	f.leave = func() {}
	if c.Ground.Image != "" {
		f.image, f.leave, err = c.Env.Images.Use(ctx, c.Ground.Image)
	}
	if key == "" || err != nil {
		return f, err
	}
	image := f.leave
	l, leave, ok := c.Env.Layers.Use(c.Thread.Repo(), key)
	f.leave = func() { leave(); image() }
	if err = fs.ErrNotExist; ok && l.Failed == nil {
		err = c.foot(ctx, &f, l, ws, home, fresh)
	}
	if err != nil {
		return f, fmt.Errorf("layer %s: %w", key, err)
	}
	return f, nil
}

// foot has f stand on a layer.
func (c *checkout) foot(ctx context.Context, f *footing, l ground.Layer, ws *git.Workspace, home string, fresh bool) (err error) {
	f.overlays, f.folders, err = c.Env.Layers.Over(ctx, l, home, ws.Dir, filepath.Join(filepath.Dir(ws.Dir), "layer"), fresh)
	return err
}
