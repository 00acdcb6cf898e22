package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
)

// changesConfig reports whether a push's commits change the repository's configuration.
func (p *payload) changesConfig() bool {
	return slices.ContainsFunc(p.Commits, func(c pushed) bool {
		return slices.Contains(slices.Concat(c.Added, c.Modified, c.Removed), config.RepoFile)
	})
}

// forkConfig checks the configuration at the head of a fork's pull request. Pawl gets no push events from forks.
func (p *payload) forkConfig() []Activity {
	switch p.Action {
	case "opened", "synchronize":
	default:
		return nil
	}
	if p.Pull.Head.Repo.ID == p.Repo.ID || p.Pull.Head.SHA == "" {
		return nil
	}
	return []Activity{{Repo: p.repo(), What: configured{commit: p.Pull.Head.SHA, base: p.Pull.Base.SHA}}}
}

// decide reports errors in a changed repository configuration on its commit, once. It runs nothing from the commit.
func (c configured) decide(ctx context.Context, h *Handlers, it Activity, guid string) (string, error) {
	note, err := h.checkConfig(ctx, it.Repo, c, guid)
	if isAny(err, forge.ErrNotFound, forge.ErrForbidden, forge.ErrUninstalled, forge.ErrInvalid) {
		return config.RepoFile + " cannot be checked: " + err.Error(), nil
	}
	return note, err
}

func isAny(err error, kinds ...error) bool {
	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

func (h *Handlers) checkConfig(ctx context.Context, repo forge.Repo, c configured, guid string) (string, error) {
	f, err := h.Forge.Repositories.File(ctx, repo, config.RepoFile, c.commit)
	if err != nil {
		return "", err
	}
	if c.base != "" {
		same, err := h.sameConfig(ctx, repo, c, f)
		if same || err != nil {
			return config.RepoFile + " is unchanged", err
		}
	}
	var problems []config.Problem
	switch {
	case f.Blob == "":
	case f.Kind != "file":
		problems = []config.Problem{{File: config.RepoFile, Line: 1, Message: "is not a regular file; Pawl follows no links"}}
	default:
		problems = config.CheckRepo(h.Solver.Env.Current(), config.RepoFile, f.Content)
	}
	run := checkrun.ConfigFile(c.commit, f.Blob != "", problems)
	return h.makeOnce(ctx, repo, run, guid)
}

// makeOnce creates a check run unless it exists. One delivery per commit, across all nodes, creates it. Others need
// not wait, because a failed delivery is retried.
func (h *Handlers) makeOnce(ctx context.Context, repo forge.Repo, run forge.CheckRun, guid string) (string, error) {
	key := fmt.Sprintf("%s/%s %s", repo.Owner, repo.Name, run.ExternalID)
	mine := false
	err := h.changeMakers(ctx, func(now time.Time, makers map[string]maker) {
		m, claimed := makers[key]
		mine = !claimed || m.Delivery == guid
		if mine {
			makers[key] = maker{Delivery: guid, At: now}
		}
	})
	if err != nil || !mine {
		return "another delivery creates " + run.Name, err
	}
	note := run.Name + " exists"
	_, exists, err := h.Forge.Checks.Find(ctx, repo, run.HeadSHA, run.Name, run.ExternalID)
	if err == nil && !exists {
		note = fmt.Sprintf("%s: %s", run.Name, run.Title)
		_, err = h.Forge.Checks.Create(ctx, repo, run)
	}
	if err != nil {
		return note, err
	}
	return note, h.changeMakers(ctx, func(_ time.Time, makers map[string]maker) { delete(makers, key) })
}

// maker is the delivery that has been creating a check run since At.
type maker struct {
	Delivery string    `json:"delivery"`
	At       time.Time `json:"at"`
}

// makerTime exceeds one try of a delivery. After that time any delivery may create the check run.
const makerTime = time.Hour

func (h *Handlers) changeMakers(ctx context.Context, change func(now time.Time, makers map[string]maker)) error {
	return h.Store.UpdateShared(ctx, "makers of config checks", func(now time.Time, old []byte) []byte {
		makers := map[string]maker{}
		_ = json.Unmarshal(old, &makers) // without a value there are no makers yet
		maps.DeleteFunc(makers, func(_ string, m maker) bool { return now.Sub(m.At).Abs() > makerTime })
		change(now, makers)
		next, _ := json.Marshal(makers) // cannot fail
		return next
	})
}

// sameConfig reports whether the file is the same as in the pull request's base or in the merge base.
func (h *Handlers) sameConfig(ctx context.Context, repo forge.Repo, c configured, f forge.File) (bool, error) {
	same := func(sha string) (bool, error) {
		before, err := h.Forge.Repositories.File(ctx, repo, config.RepoFile, sha)
		return err == nil && before.Blob == f.Blob, err
	}
	if is, err := same(c.base); is || err != nil {
		return is, err
	}
	compared, err := h.Forge.Repositories.Compare(ctx, repo, c.base, c.commit)
	if err != nil {
		return false, err
	}
	if off := compared.MergeBase.SHA; off != c.base {
		return same(off)
	}
	return false, nil
}
