package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
)

// changesConfig reports whether a push changes the repository's configuration, as its commits tell.
func (p *payload) changesConfig() bool {
	return slices.ContainsFunc(p.Commits, func(c pushed) bool {
		return slices.Contains(slices.Concat(c.Added, c.Modified, c.Removed), config.RepoFile)
	})
}

// forkConfig is about the configuration at the head of a pull request from a fork, whose pushes Pawl does not hear of.
func (p *payload) forkConfig() []Activity {
	if p.Action != "opened" && p.Action != "synchronize" || p.Pull.Head.Repo.ID == p.Repo.ID || p.Pull.Head.SHA == "" {
		return nil
	}
	return []Activity{{Repo: p.repo(), config: p.Pull.Head.SHA, base: p.Pull.Base.SHA}}
}

// checkConfig shows on a commit that changes the repository's configuration what is wrong with it, once. The file is
// read and no more: nothing of the commit is run. Against a base it is looked whether there is a change.
func (h *Handlers) checkConfig(ctx context.Context, it Activity) (string, error) {
	note, err := h.checkedConfig(ctx, it)
	if errors.Is(err, forge.ErrNotFound) || errors.Is(err, forge.ErrForbidden) || errors.Is(err, forge.ErrUninstalled) || errors.Is(err, forge.ErrInvalid) {
		return config.RepoFile + " cannot be checked: " + err.Error(), nil
	}
	return note, err
}

func (h *Handlers) checkedConfig(ctx context.Context, it Activity) (string, error) {
	f, err := forge.FileAt(ctx, h.Forge, it.Repo, config.RepoFile, it.config)
	if err != nil {
		return "", err
	}
	if it.base != "" {
		same, err := h.sameConfig(ctx, it, f)
		if same || err != nil {
			return config.RepoFile + " is as it was", err
		}
	}
	var problems []config.Problem
	switch {
	case f.Blob == "":
	case f.Kind != "file":
		problems = []config.Problem{{File: config.RepoFile, Line: 1, Message: "is no ordinary file; Pawl follows no links"}}
	default:
		problems = config.CheckRepo(h.Solver.Current(), config.RepoFile, f.Content)
	}
	run := checkrun.ConfigFile(it.config, f.Blob != "", problems)
	if _, there, err := h.Forge.FindCheckRun(ctx, it.Repo, run.HeadSHA, run.Name, run.ExternalID); there || err != nil {
		return run.Name + " is there", err
	}
	_, err = h.Forge.CreateCheckRun(ctx, it.Repo, run)
	return fmt.Sprintf("%s: %s", run.Name, run.Title), err
}

// sameConfig reports whether a pull request leaves the file as it was at its base, or where its branch went off.
func (h *Handlers) sameConfig(ctx context.Context, it Activity, f forge.File) (bool, error) {
	same := func(sha string) (bool, error) {
		before, err := forge.FileAt(ctx, h.Forge, it.Repo, config.RepoFile, sha)
		return err == nil && before.Blob == f.Blob, err
	}
	if is, err := same(it.base); is || err != nil {
		return is, err
	}
	off, err := forge.MergeBase(ctx, h.Forge, it.Repo, it.base, it.config)
	if err != nil || off == it.base {
		return false, err
	}
	return same(off)
}
