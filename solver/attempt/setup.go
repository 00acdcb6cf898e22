package attempt

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/ground"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// UseLayers stores layers in a folder and images next to it. Layers are copied if the first use shows that they cannot
// be mounted.
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

func ImagesIn(dataDir string) string { return filepath.Join(dataDir, "images") }

func LayersIn(dataDir string) string { return filepath.Join(dataDir, "layers") }

// image pulls the repository's image and sets Ground.Image, or returns a decision.
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
	c.Log.Info().Err(err).Msg("the repository's image cannot be pulled")
	d := thread.Refuse(policy.RuleSetupFailed, "Correct environment.image in .github/pawl.yml, or ask the operator; /pawl retry tries it again.", err.Error())
	d.On = g.settings
	return d, nil
}

// errNotKept abandons a layer because the disk is full or a verify command cannot work.
var errNotKept = errors.New("nothing is kept")

// lay builds the layer for attempts and verifications if needed and sets Ground.Layer. A failed setup is repeated only
// if its key changes or a user asks.
func (c *checkout) lay(ctx context.Context) (*thread.Decided, error) {
	g := c.Ground
	at, build := g.settings, true
	if !c.setsUp() {
		if err := c.propose(ctx); err != nil {
			return nil, err
		}
		if len(g.Effective.Verify) == 0 {
			return nil, nil
		}
		// Without a setup, files that the verify commands create form the layer, unless an agent wrote the code.
		var err error
		at = g.From
		build, err = g.cache.IsAncestor(ctx, at, g.settings)
		if err != nil {
			return nil, err
		}
	}
	key, err := c.layerKey(ctx)
	if err != nil {
		return nil, err
	}
	if build {
		err = c.buildLayer(ctx, at, key)
	}
	if err != nil {
		return nil, err
	}
	return c.useLayer(key)
}

func (c *checkout) setsUp() bool { return len(c.Ground.Effective.Environment.Setup) > 0 }

// buildLayer builds a missing layer. Without a setup, errors do not matter once the base was verified.
func (c *checkout) buildLayer(ctx context.Context, at, key string) error {
	err := c.Env.Layers.Build(ctx, c.Thread.Repo(), key, c.repeats, func(dir string) (ground.Record, error) {
		return c.build(ctx, at, key, dir)
	})
	if err == nil || c.setsUp() || c.Ground.Before == nil {
		return err
	}
	if ctx.Err() != nil || stopped(err) {
		return err
	}
	if !errors.Is(err, errNotKept) {
		c.Log.Warn().Err(err).Msg("the files of the base's verification were not kept")
	}
	return nil
}

// useLayer sets Ground.Layer, or returns a decision if the setup failed.
func (c *checkout) useLayer(key string) (*thread.Decided, error) {
	g := c.Ground
	l, leave, ok := c.Env.Layers.Use(c.Thread.Repo(), key)
	defer leave()
	switch {
	case !ok && c.setsUp():
		return nil, fmt.Errorf("layer %s was evicted at once: this server's layers exceed their size limit", key)
	case !ok:
		return nil, nil
	case l.Failed != nil:
		refused := thread.Refuse(policy.RuleSetupFailed, "Correct environment.setup in .github/pawl.yml, or what it needs; /pawl retry runs it again.",
			fmt.Sprintf("setup failed: %s: %s", oneLine(l.Failed.Command), l.Failed.Result))
		refused.On, refused.Output = g.settings, l.Failed.Output
		return refused, nil
	}
	g.Layer = policy.Layer{Key: key, Commit: l.Commit}
	return nil, nil
}

func stopped(err error) bool {
	ends := []error{errStopped, errClosed, errMoved, ErrRevoked}
	return slices.ContainsFunc(ends, func(end error) bool { return errors.Is(err, end) })
}

// repeats reports whether a user asked to repeat a failed setup. In a local folder, every start is such a request.
func (c *checkout) repeats(l ground.Layer) bool {
	if l.Failed == nil {
		return false
	}
	return slices.ContainsFunc(c.State.Pending(), func(r thread.Request) bool { return c.repeatsFor(l, r) })
}

func (c *checkout) repeatsFor(l ground.Layer, r thread.Request) bool {
	later := r.MadeAt.After(l.Made)
	if c.State.Snapshot.URL == "" { // a local folder
		return later
	}
	if r.Command != "retry" {
		return false
	}
	if l.Failed.Thread == c.Thread.String() {
		return r.Seq > l.Failed.Seen
	}
	return later
}

// layerKey hashes everything that decides a layer's content.
func (c *checkout) layerKey(ctx context.Context) (string, error) {
	e := c.Ground.Effective.Environment
	e.Timeout = 0
	asked, err := json.Marshal(e)
	if err != nil {
		return "", err
	}
	files, err := c.Ground.list(ctx, cmp.Or(c.Ground.settings, c.Ground.From))
	if err != nil {
		return "", err
	}
	more := []string{string(asked), c.Ground.Image, ground.Platform(), string(c.Env.Sandbox.Mode())}
	return ground.Key(slices.Concat(files.deciding, more)...), nil
}

// files holds a commit's files that decide a layer's content (see Cache.Files), and its root paths.
type files struct {
	commit         string
	deciding, root []string
}

// list returns a commit's files and caches the last result.
func (g *Ground) list(ctx context.Context, commit string) (files, error) {
	if g.listed.commit == commit {
		return g.listed, nil
	}
	var root []string
	deciding, err := g.cache.Files(ctx, commit, func(file string) bool {
		if !strings.Contains(file, "/") {
			root = append(root, file)
		}
		return ground.Decides(file)
	})
	if err != nil {
		return files{}, err
	}
	g.listed = files{commit: commit, deciding: deciding, root: root}
	return g.listed, nil
}

// propose finds a setup for a repository without one, at the thread's first attempt.
func (c *checkout) propose(ctx context.Context) error {
	if len(c.State.Attempts) > 0 {
		return nil
	}
	files, err := c.Ground.list(ctx, c.Ground.From)
	c.Ground.Proposal = ground.Propose(files.root)
	return err
}

// build runs the setup on a commit in an empty HOME, then the verify commands, which fill caches in HOME. It moves
// the setup's files into the layer.
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
	if c.setsUp() {
		if r, err = t.layOut(ctx, r, dir); err != nil || r.Failed != nil {
			return r, errors.Join(err, git.Remove(filepath.Join(dir, ground.Paths)))
		}
		err := t.moveIgnored(ctx, dir, func(string) bool { return true })
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
	if err != nil {
		return r, err
	}
	if c.setsUp() {
		err = t.moveIgnored(ctx, dir, func(file string) bool { return anyTouches(e.Paths, file) })
	} else if _, full, _ := c.Env.free(); full || policy.Unable(before) != "" {
		return r, errNotKept
	}
	if err := errors.Join(err, os.Rename(t.home, filepath.Join(dir, ground.Home))); err != nil {
		return r, err
	}
	c.Log.Info().Str("layer", key).Str("commit", at).Int("commands", len(e.Setup)).Msg("a layer was built")
	return r, nil
}

// layOut mounts the layer's absolute paths and runs the setup.
func (t *trial) layOut(ctx context.Context, r ground.Record, dir string) (ground.Record, error) {
	e := t.c.Ground.Effective.Environment
	for _, p := range e.Paths {
		if !path.IsAbs(p) {
			continue
		}
		from := filepath.Join(dir, ground.Paths, strconv.Itoa(len(r.Paths)))
		if err := os.MkdirAll(from, 0o700); err != nil {
			return r, err
		}
		r.Paths = append(r.Paths, p)
		t.footing.folders = append(t.footing.folders, sandbox.Mount{From: from, To: p})
	}
	var err error
	r.Failed, err = t.setUp(ctx, e)
	return r, err
}

// anyTouches reports whether a file equals, contains or is inside one of the paths.
func anyTouches(paths []string, file string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return strings.HasPrefix(file+"/", p+"/") || strings.HasPrefix(p+"/", file+"/")
	})
}

// moveIgnored moves the wanted ignored files from the work tree into a layer, unless the layer has them.
func (t *trial) moveIgnored(ctx context.Context, dir string, wanted func(file string) bool) error {
	files, err := t.ws.Ignored(ctx)
	for _, file := range files {
		from := filepath.Join(t.ws.Dir, filepath.FromSlash(file))
		to := filepath.Join(dir, ground.Work, filepath.FromSlash(file))
		if _, missing := os.Lstat(to); missing == nil || !wanted(file) {
			continue
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(to), 0o755), os.Rename(from, to)); err != nil {
			return err
		}
	}
	return err
}

func (e *Env) prepare(what string) {
	if e.OnPrepare != nil {
		e.OnPrepare(what)
	}
}

// setUp runs the commands until one fails, with the setup's secrets.
func (t *trial) setUp(ctx context.Context, e config.Environment) (*ground.Failure, error) {
	c := t.c
	secrets := c.Config.Setup.Names(c.Thread.Repo())
	defer c.Env.prepare("")
	for _, command := range e.Setup {
		c.Env.prepare("setting up: " + command)
		kept := render.End{Max: maxOutput}
		prog := program{
			argv:  []string{"/bin/sh", "-c", "exec 2>&1\n" + command},
			env:   secrets,
			most:  e.Time(),
			allow: c.Ground.Effective.Network.Setup,
			where: "network.setup",
		}
		report, refused, err := t.inSandbox(ctx, prog, &kept)
		if err != nil {
			return nil, fmt.Errorf("setup command %q: %w", command, err)
		}
		result := setupResult(report, e, refused)
		if result == "" {
			continue
		}
		c.Log.Info().Str("command", oneLine(command)).Str("result", result).Msg("setup failed")
		output := secret.New(c.Env.secrets(c.Config, c.Thread, 0, config.Backend{})).Redact(kept.Lines())
		return &ground.Failure{
			Command: command,
			Result:  result,
			Output:  output,
			Thread:  c.Thread.String(),
			Seen:    c.State.Seq,
		}, nil
	}
	return nil, nil
}

// setupResult says how a setup command failed, or nothing.
func setupResult(report agent.Report, e config.Environment, refused []string) string {
	result := fmt.Sprintf("exit code %d", report.Exit.Code)
	switch {
	case report.Killed:
		result = fmt.Sprintf("not done within %s", render.Span(e.Time()))
	case report.Exit.Signal != "":
		result = "ended by " + report.Exit.Signal
	case report.Exit.Code == 0:
		return ""
	}
	if report.Exit.Exceeded != "" {
		result += "; " + report.Exit.Exceeded
	}
	if len(refused) > 0 {
		result += "; refused: " + strings.Join(refused, ", ") + "; the operator can allow it in network.setup"
	}
	return result
}
