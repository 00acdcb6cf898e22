package solver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// publish brings what GitHub shows into agreement with the log: the status
// comment and, where there is a commit of the thread's branch, the check runs.
// What has not changed since it was last sent is not sent again.
func publish(ctx context.Context, p *publisher) (err error) {
	_, _, found := p.state.NewName()
	if p.Forge == nil || !p.state.Tracked() || p.state.Absent() && !found {
		return nil
	}
	if err := p.publishSaid(ctx); err != nil {
		return err
	}
	v, err := p.view(ctx, p.thread, p.state)
	if err != nil {
		return err
	}
	// Times are told as of the last change, so that the same log renders the
	// same bytes and nothing is sent again.
	v = v.AsOf(p.state.At)
	said := checkrun.Comment(v)
	for _, c := range checkrun.Checks(v) {
		said += "\n" + c.Output.Title + "\n" + c.Output.Summary
	}
	p.says(ctx, said)
	err = errors.Join(p.publishChecks(ctx, v), p.publishStatus(ctx, v))
	if v.Before != nil {
		v = *v.Before
	}
	return errors.Join(err, p.publishPull(ctx, v), p.publishRemarks(ctx, v))
}

func (p *publisher) publishStatus(ctx context.Context, v checkrun.Facts) error {
	body := checkrun.Comment(v)
	old, begun := p.state.Acts[thread.ActStatus]
	if old.Note != "" {
		return nil
	}
	if !begun {
		// A database that was restored may know nothing of the comment: look it up.
		if err := p.begin(ctx, thread.Act{Key: thread.ActStatus}); err != nil {
			return err
		}
	}
	return p.comment(ctx, thread.ActStatus, p.thread.Number, 0, body, checkrun.StatusMarker(p.thread.String()), thread.Act{Hash: thread.Hash(body)})
}

func (p *publisher) publishChecks(ctx context.Context, v checkrun.Facts) error {
	sha := p.state.ChecksOn()
	if sha == "" {
		return nil
	}
	for _, c := range checkrun.Checks(v) {
		if _, begun := p.state.Acts[thread.CheckKey(c.Name, sha)]; !begun && !p.wanted(c.Name, v) {
			continue
		}
		c.HeadSHA = sha
		if err := p.publishCheck(ctx, c); err != nil {
			return err
		}
	}
	return p.leaveCommits(ctx, sha)
}

// wanted reports whether a check run is made, by the repository's configuration and
// by whether it has something to say.
func (p *publisher) wanted(name string, v checkrun.Facts) bool {
	checks := p.state.Repo.Checks
	when := map[string]string{checkrun.NameSeverity: checks.Severity, checkrun.NameStagnation: checks.Stagnation}[name]
	return when == config.ChecksAlways || when != config.ChecksNever && checkrun.Speaks(v, name)
}

func (p *publisher) publishCheck(ctx context.Context, c forge.CheckRun) error {
	sha, sum := c.HeadSHA, sumOf(c)
	return p.act(ctx, thread.CheckKey(c.Name, sha), sum, func() (thread.Act, bool, error) {
		got, ok, err := p.Forge.FindCheckRun(ctx, p.repo(), sha, c.Name, c.ExternalID)
		return thread.Act{ID: got.ID}, ok, err
	}, func(id int64) (_ thread.Act, err error) {
		var got forge.CheckRunRef
		if id == 0 {
			got, err = p.Forge.CreateCheckRun(ctx, p.repo(), c)
			crash.Point("check_created")
		} else {
			got, err = p.Forge.UpdateCheckRun(ctx, p.repo(), id, c)
			crash.Point("check_updated")
		}
		return thread.Act{ID: got.ID, URL: got.HTMLURL, Hash: sum, SHA: sha, Going: c.Status != checkrun.Completed}, err
	})
}

// sumOf names what a check run says on a commit, so that the same is not sent again.
func sumOf(c forge.CheckRun) string {
	content, _ := json.Marshal(c) // texts, numbers and times, which can always be written
	return thread.Hash(string(content))
}

// leaveCommits ends the check runs of commits that were the head before: the one
// of an attempt that was shown there as going on, and one that a process began
// to make and did not live to log. Without that they would go on for ever.
func (p *publisher) leaveCommits(ctx context.Context, head string) error {
	for _, key := range slices.Sorted(maps.Keys(p.state.Acts)) {
		old := p.state.Acts[key]
		check, isCheck := strings.CutPrefix(key, "check:")
		name, sha, _ := strings.Cut(check, ":")
		if !isCheck || sha == head || old.Done && !old.Going {
			continue
		}
		if err := p.leaveCheck(ctx, key, name, sha, head, old); err != nil {
			return err
		}
	}
	return nil
}

func (p *publisher) leaveCheck(ctx context.Context, key, name, sha, head string, old thread.ActState) error {
	c := forge.CheckRun{
		Name: name, HeadSHA: sha, DetailsURL: p.threadURLOf(p.thread), ExternalID: checkrun.ExternalID(p.thread.String(), name), Status: checkrun.Completed, Conclusion: checkrun.Neutral,
		Output: forge.Output{
			Title:   "Went on at " + head[:min(len(head), 10)],
			Summary: fmt.Sprintf("The branch is at %s now, and the check run there tells how it stands.", head),
		},
	}
	id := old.ID
	if !old.Done {
		found, ok, err := p.Forge.FindCheckRun(ctx, p.repo(), sha, name, c.ExternalID)
		if err != nil && !p.unknown(ctx, err) {
			return fmt.Errorf("look up %s: %w", key, err)
		}
		if id = found.ID; !ok || err != nil {
			return p.acted(ctx, key, thread.Act{SHA: sha, Note: "it was never made"})
		}
	}
	done, err := p.Forge.UpdateCheckRun(ctx, p.repo(), id, c)
	if err != nil && p.unknown(ctx, err) {
		return p.acted(ctx, key, thread.Act{SHA: sha, Note: err.Error()})
	}
	if err != nil {
		return fmt.Errorf("end %s: %w", key, err)
	}
	return p.acted(ctx, key, thread.Act{ID: done.ID, URL: done.HTMLURL, SHA: sha})
}

// unknown reports whether an error says that GitHub does not know the commit or
// the check run any more, as after a force push.
func (p *publisher) unknown(ctx context.Context, err error) bool {
	return errors.Is(err, forge.ErrInvalid) || p.deleted(ctx, err)
}

// publishPull keeps the pull request that Pawl opened as the work is: its block of the description, and, once the work
// is verified, that it is no draft and who is asked for a review. Each of these can be done again without harm.
func (p *publisher) publishPull(ctx context.Context, v checkrun.Facts) error {
	if p.state.Snapshot.Pull || p.state.Pull == 0 || p.state.Closed != "" || v.State == checkrun.Running {
		return nil
	}
	if err := p.describePull(ctx, v); err != nil {
		return fmt.Errorf("keep the description of the pull request: %w", err)
	}
	if a := v.Attempts; v.State != checkrun.Done || len(a) == 0 {
		return nil
	} else if _, ok := a[len(a)-1].Verified(); !ok {
		return nil
	}
	ready := p.state.Acts[thread.PullReadyKey(p.state.Pull)].Done || !p.state.Repo.PullRequest.Ready() || p.state.Acts[thread.ActPull].Note != ""
	reviewer := v.RequestedBy
	if p.state.Acts[thread.PullReviewKey(p.state.Pull)].Done || !p.state.Repo.PullRequest.Review() || p.bot(reviewer) { // others cannot review
		reviewer = ""
	}
	if ready && reviewer == "" {
		return nil
	}
	if ok, err := p.may(ctx); !ok {
		return err
	}
	if !ready {
		if err := p.readyPull(ctx); err != nil {
			return fmt.Errorf("take the pull request out of draft: %w", err)
		}
	}
	if reviewer == "" {
		return nil
	}
	return p.askReview(ctx, thread.PullReviewKey(p.state.Pull), p.state.Pull, reviewer)
}

// maxDescription is how long a description may be, in bytes; GitHub takes 65,536 characters.
const maxDescription = 60_000

// describePull writes Pawl's block anew where it says something else than before, and the title where a later attempt has
// another one and people left Pawl's. Where people took the block out, it stays out.
func (p *publisher) describePull(ctx context.Context, v checkrun.Facts) error {
	key, block := thread.PullBodyKey(p.state.Pull), checkrun.PullBody(v)
	last, opened := p.state.Acts[key], p.state.Acts[thread.ActPull]
	had := cmp.Or(last.Title, opened.Title)
	title := p.retitled(had)
	done := thread.Act{Hash: thread.Hash(block), Title: cmp.Or(title.String(), had)}
	if last.Note != "" || done.Hash == cmp.Or(last.Hash, opened.Hash) && done.Title == had {
		return nil
	}
	pull, err := p.Forge.Issue(ctx, p.repo(), p.state.Pull)
	if p.deleted(ctx, err) {
		return nil
	}
	if err != nil {
		return err
	}
	body, ok := checkrun.WithBlock(pull.Body, block)
	if !ok {
		return p.acted(ctx, key, thread.Act{Note: "the description has no place for Pawl's part any more"})
	}
	if len(body) > maxDescription {
		return p.acted(ctx, key, thread.Act{Note: "the description is too long for Pawl's part"})
	}
	if pull.Title != had {
		title = text.Title{}
	}
	p.says(ctx, block)
	err = forge.Pulls{Client: p.Forge}.Edit(ctx, p.repo(), p.state.Pull, title, body)
	crash.Point("pull_described")
	return p.settled(ctx, key, done, err)
}

// retitled is the title that the last attempt's work has; empty where that says nothing new, or where Pawl does not know
// which it gave.
func (p *publisher) retitled(had string) text.Title {
	a := p.state.Attempts
	if had == "" || len(a) == 0 || a[len(a)-1].Receipt.Title == "" || !a[len(a)-1].Receipt.Pushed {
		return text.Title{}
	}
	return attempt.Subject(p.state, p.thread, a[len(a)-1].Receipt.Title, maxPullTitle)
}

// settled logs that something was done with the pull request, also where GitHub refuses it for good.
func (p *publisher) settled(ctx context.Context, key string, done thread.Act, err error) error {
	if p.refused(ctx, err) {
		p.log.Warn().Err(err).Str("act", key).Msg("GitHub refuses it; it is not tried again")
		done, err = thread.Act{Note: err.Error()}, nil
	}
	if err != nil {
		return err
	}
	return p.acted(ctx, key, done)
}

func (p *publisher) readyPull(ctx context.Context) error {
	node := p.state.Acts[thread.ActPull].Node
	if node == "" { // an earlier version opened it
		pull, err := p.Forge.Pull(ctx, p.repo(), p.state.Pull)
		if err != nil {
			return err
		}
		node = pull.Node
	}
	err := forge.Pulls{Client: p.Forge}.Ready(ctx, p.repo(), node)
	crash.Point("pull_ready")
	return p.settled(ctx, thread.PullReadyKey(p.state.Pull), thread.Act{}, err)
}

// askReview asks somebody for a review, once for a key.
func (p *publisher) askReview(ctx context.Context, key string, number int, login string) error {
	if p.state.Acts[key].Done {
		return nil
	}
	err := forge.Pulls{Client: p.Forge}.RequestReview(ctx, p.repo(), number, login)
	crash.Point("review_asked")
	return p.settled(ctx, key, thread.Act{}, err)
}

// bot reports whether nobody but bots asked under a login.
func (p *publisher) bot(login string) bool {
	return slices.ContainsFunc(p.state.Feedback, func(f thread.Request) bool { return f.By.Login == login && f.By.Bot() })
}
