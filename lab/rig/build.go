package rig

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Build builds the program like a release.
func Build(ctx context.Context, bin string) error {
	root, err := ProjectRoot(ctx)
	if err != nil {
		return err
	}
	return BuildGo(ctx, root, bin, "./cmd/pawl")
}

// BuildGo builds a package of the module in dir with additional flags.
func BuildGo(ctx context.Context, dir, bin, pkg string, flags ...string) error {
	args := []string{"build", "-trimpath", "-ldflags", "-s -w", "-o", bin}
	args = append(args, flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, pkg)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", pkg, err, output)
	}
	return nil
}

// ProjectRoot returns the folder above lab/.
func ProjectRoot(ctx context.Context) (string, error) {
	file, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(filepath.Dir(strings.TrimSpace(string(file)))), nil
}
