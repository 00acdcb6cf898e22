package attempt

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/ground"
	"github.com/pawlbot/pawl/internal/sandbox"
)

// footing holds a program's layer and image.
type footing struct {
	image    ground.Image
	overlays []sandbox.Overlay
	folders  []sandbox.Mount
	leave    func() // releases both
}

func (c *checkout) stand(spec *sandbox.Spec, f footing) {
	spec.Overlays, spec.Folders, spec.Root = f.overlays, f.folders, f.image.Root
	if c.Env.Sandbox.Mode() != sandbox.None {
		spec.DirAt, spec.HomeAt = insideWork, insideHome
	}
}

// over mounts a layer and the repository's image under a checkout and a HOME. fresh means an empty HOME. The caller
// must release the result, even after an error.
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

func (c *checkout) foot(ctx context.Context, f *footing, l ground.Layer, ws *git.Workspace, home string, fresh bool) (err error) {
	f.overlays, f.folders, err = c.Env.Layers.Mount(ctx, l, home, ws.Dir, filepath.Join(filepath.Dir(ws.Dir), "layer"), fresh)
	return err
}
