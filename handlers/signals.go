package handlers

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// Users' acts on the work (approvals, requests for changes, reverts) request no work. They grade backends.

// signal holds the author of such an act, and whether the act itself proves write permission.
type signal struct {
	by       feedback.Actor
	mayWrite bool
}

// Texts of reverts: GitHub's button writes the first into a pull request's description, git revert the second into a
// commit message.
var (
	revertsPull   = regexp.MustCompile(`(?m)^Reverts ([A-Za-z0-9._-]+/[A-Za-z0-9._-]+)?#([1-9][0-9]{0,8})\b`)
	revertsCommit = regexp.MustCompile(`(?m)^\s*This reverts commit ([0-9a-f]{7,64})\b`)
)

// maxReverts limits the reverts of one push or pull request. Each commit may need an API request.
const maxReverts = 20

// revertingPull finds reverts in a pull request that was merged into the default branch.
func revertingPull(of Activity, pr issueOrPull, by feedback.Actor) []Activity {
	if !strings.HasPrefix(pr.Title, `Revert "`) || pr.Base.Ref != of.Snapshot.DefaultBranch {
		return nil
	}
	return reverts(of, revertedPulls(pr.Body, of.Repo), by)
}

// revertingPush finds reverts in the commit messages of a push to the default branch.
func revertingPush(p *payload) []Activity {
	of := Activity{Repo: p.repo(), URL: p.Compare}
	var all []reverted
	for _, c := range p.Commits {
		named := revertedPulls(c.Message, of.Repo)
		if len(named) == 0 {
			for _, m := range revertsCommit.FindAllStringSubmatch(c.Message, maxReverts) {
				named = append(named, reverted{commit: m[1]})
			}
		}
		all = append(all, named...)
	}
	return reverts(of, all, p.Sender)
}

type reverted struct {
	number int
	commit string
}

func revertedPulls(text string, r forge.Repo) (all []reverted) {
	for _, m := range revertsPull.FindAllStringSubmatch(text, maxReverts) {
		if m[1] != "" && !strings.EqualFold(m[1], r.FullName()) {
			continue
		}
		if n, err := strconv.Atoi(m[2]); err == nil {
			all = append(all, reverted{number: n})
		}
	}
	return all
}

// reverts returns one activity per pull request and commit. The merge or push proves write permission.
func reverts(of Activity, all []reverted, by feedback.Actor) (activities []Activity) {
	slices.SortFunc(all, func(a, b reverted) int {
		return cmp.Or(cmp.Compare(a.commit, b.commit), cmp.Compare(a.number, b.number))
	})
	all = slices.Compact(all)
	for _, r := range all[:min(len(all), maxReverts)] {
		it := Activity{Repo: of.Repo, Number: r.number, URL: of.URL, Key: revertedKey(r.number)}
		it.What = Changed{
			signal: &signal{by: by, mayWrite: true},
			commit: r.commit,
			Change: &thread.Change{What: "reverted", By: by.Login, Detail: r.commit, Number: r.number, URL: of.URL},
		}
		activities = append(activities, it)
	}
	return activities
}

// revertedKey lets a pull request be reverted once, however many events report it.
func revertedKey(number int) string { return fmt.Sprintf("signal:reverted:%d", number) }

// byCommit finds the pull request of an activity's commit. A commit without a merged pull request belongs to no thread.
func (h *Handlers) byCommit(ctx context.Context, it Activity, c Changed) (Activity, Changed, error) {
	if c.commit == "" {
		return it, c, nil
	}
	pulls, err := h.Forge.PullRequests.OfCommit(ctx, it.Repo, c.commit)
	if err != nil && !isAny(err, forge.ErrNotFound, forge.ErrInvalid) {
		return it, c, fmt.Errorf("the pull request of commit %s: %w", c.commit, err)
	}
	for _, p := range pulls {
		if p.Merged() {
			change := *c.Change
			change.Number = p.Number
			c.Change = &change
			it.Number, it.Key = p.Number, revertedKey(p.Number)
			break
		}
	}
	return it, c, nil
}

// mute returns why a signal does not count; empty if it does.
func (h *Handlers) mute(ctx context.Context, t thread.ID, s thread.State, it Activity, of signal) (string, error) {
	by := of.by
	app, err := h.Forge.Apps.Get(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("look up the App: %w", err)
	case it.Number == t.Number && !s.Snapshot.Pull:
		return "it names an issue, not a pull request", nil
	case app.BotID != 0 && by.ID == app.BotID:
		return "it was done by this App's bot user", nil
	case by.Bot():
		if slices.Contains(h.Solver.Env.Current().Policy.AllowedBots, by.ID) {
			return "", nil
		}
		return by.Login + " is a bot that is not in allowed_bots", nil
	case of.mayWrite:
		return "", nil
	}
	permission, unseen, err := h.permission(ctx, it.Repo, by.Login)
	if err != nil || feedback.Writes(permission) {
		return "", err
	}
	if unseen != "" {
		return unseen, nil
	}
	return fmt.Sprintf("%s has %s permission; write is needed", by.Login, permission), nil
}

// permission returns an account's permission on a repository, or why GitHub does not show the repository to the App.
func (h *Handlers) permission(ctx context.Context, r forge.Repo, login string) (level, unseen string, err error) {
	if r.Installation == 0 { // the App is not installed there
		return "none", "the App is not installed on the repository", nil
	}
	level, err = h.Forge.Repositories.Permission(ctx, r, login)
	if errors.Is(err, forge.ErrUninstalled) {
		return "none", err.Error(), nil
	}
	if err != nil {
		return "", "", fmt.Errorf("permission of %s on %s: %w", login, r.FullName(), err)
	}
	return level, "", nil
}

// maxThumbs limits the checked reactions of one comment. Each may need an API request.
const maxThumbs = 20

// thumbs returns permitted users' reactions to the status comment. GitHub sends no webhook for reactions, so they are
// read together with other signals.
func (h *Handlers) thumbs(ctx context.Context, t thread.ID, s thread.State, it Activity, what string) (events []thread.NewEvent, err error) {
	switch what {
	case "head_moved", "base_moved":
		return nil, nil
	}
	status := s.Acts[thread.ActStatus]
	pushed := func(a thread.Attempt) bool { return a.Receipt.Pushed }
	if status.ID == 0 || !slices.ContainsFunc(s.Attempts, pushed) {
		return nil, nil
	}
	all, err := h.Forge.Issues.Reactions(ctx, it.Repo, status.ID)
	if isAny(err, forge.ErrNotFound, forge.ErrUninstalled) {
		return nil, nil
	}
	for _, r := range all {
		what := map[string]string{"+1": "thumbs_up", "-1": "thumbs_down"}[r.Content]
		if what == "" || len(events) >= maxThumbs {
			continue
		}
		why, err := h.mute(ctx, t, s, Activity{Repo: it.Repo}, signal{by: r.User})
		if err != nil {
			return nil, err
		}
		if why != "" {
			continue
		}
		events = append(events, thread.NewEvent{
			Key:  fmt.Sprintf("signal:reaction:%d", r.ID),
			Kind: thread.KindThread,
			At:   h.Now(),
			Data: thread.Change{What: what, By: r.User.Login},
		})
	}
	return events, err
}

// refusedKey is the key of a shared map from a user's id to the time of the reply Refused.
const refusedKey = "refused"

// maxRefused limits these replies in 24 hours, because anyone may comment on a public repository.
const maxRefused = 100

// reply returns the reply to an ignored remark. Refused is posted once a day per user, NotACommand once per thread, others
// each time.
func (h *Handlers) reply(ctx context.Context, it Activity, f thread.Feedback, j feedback.Judgement) ([]thread.NewEvent, error) {
	e := thread.NewEvent{Kind: thread.KindQuestion, At: h.Now()}
	switch f.Command = j.Reply; j.Reply {
	case feedback.NotACommand:
		e.Key = fmt.Sprintf("%s:%d", j.Reply, it.Number)
	case feedback.Refused:
		if first, err := h.firstToday(ctx, f.By); !first || err != nil {
			return nil, err
		}
	}
	f.Private = it.private
	e.Data = f
	return []thread.NewEvent{e}, nil
}

// firstToday stores a reply to the user, unless the user or maxRefused others got one in the last 24 hours. It reports
// whether it did.
func (h *Handlers) firstToday(ctx context.Context, who feedback.Actor) (first bool, err error) {
	err = h.Store.UpdateShared(ctx, refusedKey, func(now time.Time, old []byte) []byte {
		replied := map[int64]time.Time{}
		_ = json.Unmarshal(old, &replied) // an unreadable value counts as empty
		for id, at := range replied {
			if now.Sub(at).Abs() >= 24*time.Hour {
				delete(replied, id)
			}
		}
		_, known := replied[who.ID]
		first = !known && len(replied) < maxRefused
		if !first {
			return nil
		}
		replied[who.ID] = now
		next, _ := json.Marshal(replied) // cannot fail
		return next
	})
	return first, err
}
