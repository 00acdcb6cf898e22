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

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// publisher holds a thread under its lease: the folded log, and the means to write to the log and to GitHub.
type publisher struct {
	solver *Solver
	env    *attempt.Env   // the solver's
	Config *config.Server // of this step
	Forge  *forge.Client  // its writes confirm the lease; nil without GitHub
	thread thread.ID
	lease  *lease.Holder
	app    forge.App // Pawl's identity; zero without GitHub
	state  thread.State
	log    zerolog.Logger
	plain  zerolog.Logger // log without the fields from the thread's log
}

func (p *publisher) load(ctx context.Context) error {
	_, state, err := thread.Load(ctx, p.env.Store, p.thread)
	p.state = state
	if err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	// Log lines name the delivery of the newest remark or change, and the running attempt.
	log := p.plain.With()
	if p.state.Delivery != "" {
		log = log.Str("delivery", p.state.Delivery)
	}
	if a, running := p.state.Running(); running {
		log = log.Int("attempt", a.N)
	}
	p.log = log.Logger()
	return nil
}

// repo returns the thread's repository on GitHub. After a rename it has the new name, so that the end is shown there.
func (p *publisher) repo() forge.Repo {
	n := p.state.Snapshot
	r := forge.Repo{Owner: p.thread.Owner, Name: p.thread.Name, ID: n.RepoID, Installation: n.Installation}
	if owner, name, ok := p.state.NewName(); ok {
		r.Owner, r.Name = owner, name
	}
	return r
}

// An act is logged before and after it is done. If only its beginning is logged, it may have happened, so Pawl first
// looks for the result on GitHub.

// act does one thing once per key. After an interrupted try it first looks up whether the thing was done. An act with a
// hash keeps an object current: it creates the object once, and updates it when the content changes.
func (p *publisher) act(ctx context.Context, key, hash string, find func() (thread.Act, bool, error), do func(id int64) (thread.Act, error)) error {
	old, begun := p.state.Acts[key]
	if old.Done && old.Hash == hash {
		return nil
	}
	if begun && !old.Done {
		found, ok, err := find()
		if err != nil {
			return fmt.Errorf("look up %s: %w", key, err)
		}
		if ok && hash == "" {
			return p.acted(ctx, key, found)
		}
		if ok { // update the object of the earlier try
			old.ID = found.ID
		}
	} else if err := p.begin(ctx, thread.Act{Key: key, ID: old.ID, URL: old.URL}); err != nil {
		return err
	}
	crash.Point("act_begun")
	done, err := do(old.ID)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return p.acted(ctx, key, done)
}

func (p *publisher) begin(ctx context.Context, a thread.Act) error {
	if err := p.lease.Record(ctx, thread.KindActStarted, a); err != nil {
		return err
	}
	p.state.Acts[a.Key] = thread.ActState{Act: a}
	return nil
}

// logOwnText logs a text that Pawl is about to publish, so that copies of it are recognised as its own.
func (p *publisher) logOwnText(ctx context.Context, text string) {
	var own feedback.Authored
	own.Read(p.state.Own)
	own.AddOwn(text)
	runs := own.Fresh()
	if len(runs) == 0 {
		return
	}
	p.state.Own = append(p.state.Own, runs...)
	if err := p.lease.Record(ctx, thread.KindPublished, thread.Authored{Runs: runs}); err != nil {
		p.log.Warn().Err(err).Msg("a published text was not logged; a copy of it would count as feedback")
	}
}

// acted logs that an act was done, and updates the step's state.
func (p *publisher) acted(ctx context.Context, key string, a thread.Act) error {
	a.Key = key
	if err := p.lease.Record(ctx, thread.KindActDone, a); err != nil {
		return err
	}
	crash.Point("act_logged")
	p.state.Acts[key] = thread.ActState{Act: a, Done: true, At: p.env.Now()}
	if key == thread.ActPull {
		p.state.Pull = int(a.ID)
	}
	return nil
}

// publish brings GitHub up to date with the log: the status comment and, if the thread's branch has a commit, the check
// runs. An unchanged rendering is not sent again.
func (p *publisher) publish(ctx context.Context) error {
	if !p.shows() {
		return nil
	}
	if err := p.publishAnswers(ctx); err != nil {
		return err
	}
	v, err := p.solver.view(ctx, p.thread, p.state)
	if err != nil {
		return err
	}
	// Times are relative to the last change, so that the same log renders the same bytes.
	v = v.AsOf(p.state.At)
	comment := checkrun.Comment(v)
	for _, c := range checkrun.Checks(v) {
		comment += "\n" + c.Output.Title + "\n" + c.Output.Summary
	}
	p.logOwnText(ctx, comment)
	err = errors.Join(p.publishChecks(ctx, v), p.publishStatus(ctx, v))
	return errors.Join(err, p.publishPull(ctx, v), p.publishRemarks(ctx, v.Work()), p.mention(ctx))
}

// shows reports whether GitHub has a thread on which Pawl works.
func (p *publisher) shows() bool {
	if p.Forge == nil || !p.state.Worked() {
		return false
	}
	if !p.state.Absent() {
		return true
	}
	_, _, renamed := p.state.NewName()
	return renamed
}

func (p *publisher) publishStatus(ctx context.Context, v checkrun.View) error {
	body := checkrun.Comment(v)
	old, begun := p.state.Acts[thread.ActStatus]
	if old.Note != "" {
		return nil
	}
	if !begun {
		// A restored database may lack the comment. Log a beginning, so that act looks for it on GitHub.
		if err := p.begin(ctx, thread.Act{Key: thread.ActStatus}); err != nil {
			return err
		}
	}
	return p.comment(ctx, thread.ActStatus, p.thread.Number, 0, body, checkrun.StatusMarker(p.thread.String()), thread.Act{Hash: thread.Hash(body)})
}

func (p *publisher) publishChecks(ctx context.Context, v checkrun.View) error {
	sha := p.state.ChecksOn()
	if sha == "" {
		return nil
	}
	for _, c := range checkrun.Checks(v) {
		key := thread.CheckKey(c.Name, sha)
		if _, begun := p.state.Acts[key]; !begun && !p.wanted(c.Name, v) {
			continue
		}
		c.HeadSHA = sha
		content, _ := json.Marshal(c) // strings, numbers and times always marshal
		sum := thread.Hash(string(content))
		err := p.act(ctx, key, sum, func() (thread.Act, bool, error) {
			got, ok, err := p.Forge.Checks.Find(ctx, p.repo(), sha, c.Name, c.ExternalID)
			return thread.Act{ID: got.ID}, ok, err
		}, func(id int64) (_ thread.Act, err error) {
			var got forge.CheckRunRef
			if id == 0 {
				got, err = p.Forge.Checks.Create(ctx, p.repo(), c)
				crash.Point("check_created")
			} else {
				got, err = p.Forge.Checks.Update(ctx, p.repo(), id, c)
				crash.Point("check_updated")
			}
			return thread.Act{ID: got.ID, URL: got.HTMLURL, Hash: sum, SHA: sha, Going: c.Status != checkrun.Completed}, err
		})
		if err != nil {
			return err
		}
	}
	return p.leaveCommits(ctx, sha)
}

// wanted reports whether to create a check run. The repository's configuration decides, or else whether the check run
// has something to show.
func (p *publisher) wanted(name string, v checkrun.View) bool {
	checks := p.state.Repo.Checks
	when := map[string]string{checkrun.NameSeverity: checks.Severity, checkrun.NameStagnation: checks.Stagnation}[name]
	switch when {
	case config.ChecksAlways:
		return true
	case config.ChecksNever:
		return false
	}
	return checkrun.Speaks(v, name)
}

// leaveCommits ends the check runs of former head commits, which would otherwise run forever. Some show a running
// attempt; others were created by a process that ended before it logged them.
func (p *publisher) leaveCommits(ctx context.Context, head string) error {
	for _, key := range slices.Sorted(maps.Keys(p.state.Acts)) {
		old := p.state.Acts[key]
		check, isCheck := strings.CutPrefix(key, "check:")
		name, sha, _ := strings.Cut(check, ":")
		over := old.Done && !old.Going
		if !isCheck || over || sha == head {
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
		Name:       name,
		HeadSHA:    sha,
		DetailsURL: p.solver.threadURLOf(p.thread),
		ExternalID: checkrun.ExternalID(p.thread.String(), name),
		Status:     checkrun.Completed,
		Conclusion: checkrun.Neutral,
		Output: forge.Output{
			Title:   "Continued at " + head[:min(len(head), 10)],
			Summary: fmt.Sprintf("The branch is now at %s. The check run there has the current state.", head),
		},
	}
	id := old.ID
	if !old.Done {
		found, ok, err := p.Forge.Checks.Find(ctx, p.repo(), sha, name, c.ExternalID)
		if err != nil && !p.unknown(ctx, err) {
			return fmt.Errorf("look up %s: %w", key, err)
		}
		id = found.ID
		if !ok || err != nil {
			return p.acted(ctx, key, thread.Act{SHA: sha, Note: "it was never made"})
		}
	}
	done, err := p.Forge.Checks.Update(ctx, p.repo(), id, c)
	if err != nil && p.unknown(ctx, err) {
		return p.acted(ctx, key, thread.Act{SHA: sha, Note: err.Error()})
	}
	if err != nil {
		return fmt.Errorf("end %s: %w", key, err)
	}
	return p.acted(ctx, key, thread.Act{ID: done.ID, URL: done.HTMLURL, SHA: sha})
}

// unknown reports whether GitHub no longer knows the commit or the check run, as after a force-push.
func (p *publisher) unknown(ctx context.Context, err error) bool {
	if errors.Is(err, forge.ErrInvalid) {
		return true
	}
	return p.deleted(ctx, err)
}

// publishPull keeps Pawl's pull request current: its block of the description and, once the work is verified, its draft
// state and reviewer. Repeating any of them is harmless.
func (p *publisher) publishPull(ctx context.Context, v checkrun.View) error {
	if !p.keepsPull(v) {
		return nil
	}
	if err := p.describePull(ctx, v); err != nil {
		return fmt.Errorf("keep the description of the pull request: %w", err)
	}
	if !lastVerified(v.Work()) {
		return nil
	}
	ready, reviewer := p.pullReady(), p.reviewer(v.RequestedBy)
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

// keepsPull reports whether Pawl's pull request is open and no attempt is running that will change it.
func (p *publisher) keepsPull(v checkrun.View) bool {
	if p.state.Snapshot.Pull || p.state.Pull == 0 {
		return false
	}
	if p.state.Closed != "" {
		return false
	}
	return v.State != checkrun.Running
}

// lastVerified reports whether the run is done with work that passes its verify commands.
func lastVerified(v checkrun.View) bool {
	n := len(v.Attempts)
	if v.State != checkrun.Done || n == 0 {
		return false
	}
	return v.Attempts[n-1].CommandsPassed()
}

// pullReady reports whether nothing is left to do about the draft state: the pull request is ready, or stays a draft.
func (p *publisher) pullReady() bool {
	if !p.state.Repo.PullRequest.Ready() {
		return true
	}
	neverDraft := p.state.Acts[thread.ActPull].Note != ""
	return neverDraft || p.state.Acts[thread.PullReadyKey(p.state.Pull)].Done
}

// reviewer returns the user to request a review from: the one who asked for the work, unless it is a bot. Empty means
// none.
func (p *publisher) reviewer(requested string) string {
	if !p.state.Repo.PullRequest.Review() || p.state.Acts[thread.PullReviewKey(p.state.Pull)].Done {
		return ""
	}
	bot := func(f thread.Request) bool { return f.By.Login == requested && f.By.Bot() }
	if slices.ContainsFunc(p.state.Feedback, bot) {
		return ""
	}
	return requested
}

// maxDescription limits a description, in bytes; GitHub takes 65,536 characters.
const maxDescription = 60_000

// describePull updates Pawl's block of the description. It updates the title if a later attempt gives a new one and no
// user changed Pawl's title. A removed block stays removed.
func (p *publisher) describePull(ctx context.Context, v checkrun.View) error {
	key, block := thread.PullBodyKey(p.state.Pull), checkrun.PullBody(v)
	last, opened := p.state.Acts[key], p.state.Acts[thread.ActPull]
	had := cmp.Or(last.Title, opened.Title)
	title := p.retitled(had)
	done := thread.Act{Hash: thread.Hash(block), Title: cmp.Or(title.String(), had)}
	same := done.Hash == cmp.Or(last.Hash, opened.Hash) && done.Title == had
	if same || last.Note != "" {
		return nil
	}
	pull, err := p.Forge.Issues.Get(ctx, p.repo(), p.state.Pull)
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
		title = render.Title{}
	}
	p.logOwnText(ctx, block)
	err = p.Forge.PullRequests.Edit(ctx, p.repo(), p.state.Pull, title, body)
	crash.Point("pull_described")
	return p.finishAct(ctx, key, done, err)
}

// retitled returns a title for the last attempt's pushed work. It is empty if the agent gave none, or if Pawl does not
// know the pull request's earlier title.
func (p *publisher) retitled(had string) render.Title {
	n := len(p.state.Attempts)
	if had == "" || n == 0 {
		return render.Title{}
	}
	last := p.state.Attempts[n-1].Receipt
	if last.Title == "" || !last.Pushed {
		return render.Title{}
	}
	return attempt.Subject(p.state, p.thread, last, maxPullTitle)
}

// finishAct logs an act on the pull request as done, even if GitHub refuses it permanently.
func (p *publisher) finishAct(ctx context.Context, key string, done thread.Act, err error) error {
	if p.refused(ctx, err) {
		p.log.Warn().Err(err).Str("act", key).Msg("GitHub refuses this act; it is not retried")
		done, err = thread.Act{Note: err.Error()}, nil
	}
	if err != nil {
		return err
	}
	return p.acted(ctx, key, done)
}

func (p *publisher) readyPull(ctx context.Context) error {
	node := p.state.Acts[thread.ActPull].Node
	if node == "" { // the pull request was closed and reopened
		pull, err := p.Forge.PullRequests.Get(ctx, p.repo(), p.state.Pull)
		if err != nil {
			return err
		}
		node = pull.Node
	}
	err := p.Forge.PullRequests.Ready(ctx, p.repo(), node)
	crash.Point("pull_ready")
	return p.finishAct(ctx, thread.PullReadyKey(p.state.Pull), thread.Act{}, err)
}

// askReview requests a review, once per key.
func (p *publisher) askReview(ctx context.Context, key string, number int, login string) error {
	if p.state.Acts[key].Done {
		return nil
	}
	err := p.Forge.PullRequests.RequestReview(ctx, p.repo(), number, login)
	crash.Point("review_asked")
	return p.finishAct(ctx, key, thread.Act{}, err)
}
