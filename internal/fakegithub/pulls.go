package fakegithub

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

func (w pulls) listPulls(c *call) *reply {
	state, head, base := c.query("state", "open"), c.query("head", ""), c.query("base", "")
	var list []*thread
	for _, t := range c.repo.threads {
		if t.pull == nil || (state != "all" && t.state != state) || (base != "" && t.pull.baseRef != base) {
			continue
		}
		if head != "" && !strings.EqualFold(head, c.repo.owner.login+":"+t.pull.headRef) {
			continue
		}
		list = append(list, t)
	}
	if c.query("direction", "desc") == "desc" {
		slices.Reverse(list)
	}
	return page(c, list, func(t *thread) obj { return w.renderPullSimple(c.repo, t) }, array)
}

type pullParams struct {
	Title string `json:"title"`
	Body  string `json:"body"`
	Head  string `json:"head"`
	Base  string `json:"base"`
	Draft bool   `json:"draft"`
}

func (w pulls) createPull(c *call) *reply {
	var want pullParams
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if !c.has("contents:read") {
		return c.forbidden("contents:read")
	}
	t, bad := w.openPull(c.context(), c.repo, c.who.account(), c.who.via(), want)
	if bad != nil {
		return bad
	}
	return created(w.renderPull(c.repo, t))
}

func (w pulls) openPull(ctx context.Context, r *repository, by *account, via *app, want pullParams) (*thread, *reply) {
	if bad := checkThread("PullRequest", &want.Title, &want.Body); bad != nil {
		return nil, bad
	}
	head := strings.TrimPrefix(want.Head, r.owner.login+":")
	headSHA, baseSHA := r.branches[head], r.branches[want.Base]
	if headSHA == "" {
		return nil, failed("PullRequest", "head", "invalid", "")
	}
	if baseSHA == "" {
		return nil, failed("PullRequest", "base", "invalid", "")
	}
	for _, t := range r.threads {
		if t.pull != nil && t.state == "open" && t.pull.headRef == head && t.pull.baseRef == want.Base {
			return nil, failed("PullRequest", "", "custom", "A pull request already exists for "+r.owner.login+":"+head+".")
		}
	}
	diff, err := r.compare(ctx, baseSHA, headSHA)
	switch {
	case err != nil:
		return nil, failed("PullRequest", "", "custom", "The "+head+" branch has no history in common with "+want.Base)
	case diff.commits == 0:
		return nil, failed("PullRequest", "", "custom", "No commits between "+want.Base+" and "+head)
	}
	t := w.addThread(r, by, via, want.Title, want.Body)
	t.pull = &pull{id: w.newID(), draft: want.Draft, headRef: head, headSHA: headSHA, baseRef: want.Base, baseSHA: baseSHA}
	if err := w.pushes().measure(ctx, r, t); err != nil {
		return nil, problem(http.StatusInternalServerError, err.Error())
	}
	w.emitThread(r, t, "opened", by, nil)
	return t, nil
}

// getPull starts the computation of mergeability, like GitHub. Until the next request, "mergeable" is null.
func (w pulls) getPull(c *call, t *thread) *reply {
	now := ok(w.renderPull(c.repo, t))
	t.pull.computed = !t.pull.computes
	return now
}

// RequireUpToDate sets a branch rule: pull requests must contain their base before a merge.
func (w pulls) RequireUpToDate(repo string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err == nil {
		r.upToDate = true
	}
	return err
}

// replyToReviewComment replies to a thread's first comment: "Replies to replies are not supported".
func (w pulls) replyToReviewComment(c *call, t *thread) *reply {
	var want struct {
		Body string `json:"body"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	for _, first := range t.pull.comments {
		if first.id != c.id() || first.answers != 0 {
			continue
		}
		if want.Body == "" {
			return invalid("body can't be blank")
		}
		now := w.now()
		m := &reviewComment{comment: comment{id: w.newID(), author: c.who.account(), via: c.who.app, body: want.Body, created: now, updated: now},
			review: first.review, path: first.path, line: first.line, hunk: first.hunk, commit: first.commit, answers: first.id}
		t.pull.comments = append(t.pull.comments, m)
		w.emit("pull_request_review_comment", c.repo, c.who.account(), obj{"action": "created", "comment": w.renderReviewComment(c.repo, t, m), "pull_request": w.renderPullSimple(c.repo, t)})
		return created(w.renderReviewComment(c.repo, t, m))
	}
	return notFound()
}

// requestReviewers requests reviews from readers other than the author.
func (w pulls) requestReviewers(c *call, t *thread) *reply {
	var want struct {
		Reviewers []string `json:"reviewers"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	var asked []*account
	for _, login := range want.Reviewers {
		a := w.accounts[strings.ToLower(login)]
		switch {
		case a == nil || rank(c.repo.role(a)) < rank("read"):
			return problem(http.StatusUnprocessableEntity, "Reviews may only be requested from collaborators. One or more of the users or teams you specified is not a collaborator of the "+c.repo.fullName()+" repository.")
		case a == t.author:
			return problem(http.StatusUnprocessableEntity, "Review cannot be requested from pull request author.")
		}
		asked = append(asked, a)
	}
	for _, a := range asked {
		w.askFor(c.repo, t, c.who.account(), a)
	}
	return created(w.renderPullSimple(c.repo, t))
}

func (w pulls) askFor(r *repository, t *thread, by, whom *account) {
	if !slices.Contains(t.pull.asked, whom) {
		t.pull.asked = append(t.pull.asked, whom)
		w.emitThread(r, t, "review_requested", by, obj{"requested_reviewer": w.renderUser(whom)})
	}
}

// AskReview requests a review from any account, including bots. GitHub allows only a few bots as reviewers.
func (w pulls) AskReview(repo string, number int, as, whom string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		to, err := w.account(whom)
		if err == nil && t.pull == nil {
			err = fmt.Errorf("%s#%d is not a pull request", repo, number)
		}
		if err == nil {
			w.askFor(r, t, by, to)
		}
		return err
	})
}

// Retarget changes a pull request's base.
func (w pulls) Retarget(repo string, number int, as, base string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		if t.pull == nil {
			return fmt.Errorf("%s#%d is not a pull request", repo, number)
		}
		from := t.pull.baseRef
		t.pull.baseRef, t.updated = base, w.now()
		w.emitThread(r, t, "edited", by, obj{"changes": obj{"base": obj{"ref": obj{"from": from}}}})
		return nil
	})
}

func (w pulls) listReviews(c *call, t *thread) *reply {
	return page(c, t.pull.reviews, func(v *review) obj { return w.renderReview(c.repo, t, v) }, array)
}

func (w pulls) listReviewComments(c *call, t *thread) *reply {
	return page(c, t.pull.comments, func(m *reviewComment) obj { return w.renderReviewComment(c.repo, t, m) }, array)
}

// addReview records a review and sends its event. In webhooks GitHub writes the state in lower case.
func (w pulls) addReview(r *repository, t *thread, by *account, state, body, commit string) *review {
	v := &review{id: w.newID(), author: by, body: body, state: state, commit: commit, submitted: w.now()}
	t.pull.reviews = append(t.pull.reviews, v)
	t.updated = v.submitted
	rendered := w.renderReview(r, t, v)
	rendered["state"], rendered["body"] = strings.ToLower(state), textOrNull(body)
	w.emit("pull_request_review", r, by, obj{"action": "submitted", "review": rendered, "pull_request": w.renderPullSimple(r, t)})
	return v
}

// listPullsOfCommit lists "the merged pull request that introduced the commit to the repository", else open ones
// (REST API, list pull requests associated with a commit).
func (w pulls) listPullsOfCommit(c *call) *reply {
	sha, found := c.resolve(c.r.PathValue("ref"))
	if !found {
		return problem(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.r.PathValue("ref"))
	}
	var list []*thread
	for _, t := range c.repo.threads {
		if t.pull == nil || t.state == "closed" && t.pull.mergedAt.IsZero() {
			continue
		}
		out, err := c.repo.git.run(c.context(), nil, "rev-list", t.pull.baseSHA+".."+t.pull.headSHA)
		if t.pull.mergeSHA == sha || err == nil && slices.Contains(strings.Fields(string(out)), sha) {
			list = append(list, t)
		}
	}
	return page(c, list, func(t *thread) obj { return w.renderPullSimple(c.repo, t) }, array)
}

// comparison has a pull request's figures for base...head.
type comparison struct {
	commits, files, additions, deletions int
	mergeable, behind                    bool
}

// compare computes a pull request's comparison with git.
func (r *repository) compare(ctx context.Context, base, head string) (comparison, error) {
	key := base + "..." + head
	if known, is := r.comparisons[key]; is {
		return known, nil
	}
	behind, ahead, err := r.git.distance(ctx, base, head)
	if err != nil {
		return comparison{}, err
	}
	out, err := r.git.run(ctx, nil, "diff", "--numstat", key)
	if err != nil {
		return comparison{}, err // no common history
	}
	c := comparison{commits: ahead, behind: behind > 0, mergeable: true}
	for line := range strings.Lines(string(out)) {
		c.files++
		f := strings.Fields(line)
		if added, err := strconv.Atoi(f[0]); err == nil { // "-" for binary files
			c.additions += added
		}
		if deleted, err := strconv.Atoi(f[1]); err == nil {
			c.deletions += deleted
		}
	}
	if c.behind {
		_, err = r.git.run(ctx, nil, "merge-tree", "--write-tree", base, head)
		c.mergeable = err == nil
	}
	r.comparisons[key] = c
	return c, nil
}

// hunk returns a file's first hunk between two commits, for review comments.
func (r *repository) hunk(ctx context.Context, base, head, file string) (string, error) {
	out, err := r.git.run(ctx, nil, "diff", base+"..."+head, "--", file)
	if err != nil {
		return "", err
	}
	text := string(out)
	start := strings.Index(text, "\n@@")
	if start < 0 {
		return "", nil
	}
	text = text[start+1:]
	if next := strings.Index(text, "\n@@"); next > 0 {
		text = text[:next]
	}
	return strings.TrimSuffix(text, "\n"), nil
}

type PullRequest struct {
	Title, Body, Head, Base string // Base is the default branch if empty
	Draft                   bool
}

func (w pulls) OpenPull(ctx context.Context, repo, as string, p PullRequest) (int, error) {
	r, by, done, err := w.pushes().pusher(repo, as)
	if err != nil {
		return 0, err
	}
	defer done()
	if p.Base == "" {
		p.Base = r.defaultBranch
	}
	t, bad := w.openPull(ctx, r, by, nil, pullParams(p))
	if bad != nil {
		return 0, fmt.Errorf("open a pull request in %s: %s", repo, bad)
	}
	return t.number, nil
}

// ClosePull closes a pull request without merging.
func (w pulls) ClosePull(repo string, number int, as string) error {
	return w.issues().turn(repo, number, as, "closed")
}

// MergePull merges with a merge commit and returns its id.
func (w pulls) MergePull(ctx context.Context, repo string, number int, as string) (string, error) {
	r, by, done, err := w.pushes().pusher(repo, as)
	if err != nil {
		return "", err
	}
	defer done()
	t, err := r.pull(number)
	if err != nil {
		return "", err
	}
	if t.state != "open" {
		return "", fmt.Errorf("%s#%d is closed", repo, number)
	}
	base := r.branches[t.pull.baseRef]
	tree, err := r.git.run(ctx, nil, "merge-tree", "--write-tree", base, t.pull.headSHA)
	if err != nil {
		return "", err
	}
	message := fmt.Sprintf("Merge pull request #%d from %s/%s\n\n%s\n", number, r.owner.login, t.pull.headRef, t.title)
	out, err := r.git.run(ctx, []byte(message), "-c", "user.name="+by.login, "-c", "user.email="+email(by),
		"commit-tree", strings.TrimSpace(string(tree)), "-p", base, "-p", t.pull.headSHA)
	if err != nil {
		return "", err
	}
	sha := strings.TrimSpace(string(out))
	t.pull.mergedAt, t.pull.mergedBy, t.pull.mergeSHA = w.now(), by, sha
	w.setState(r, t, "closed", "", by)
	return sha, w.pushes().moveRef(ctx, r, by, "refs/heads/"+t.pull.baseRef, sha)
}

// Review submits a review; state is APPROVED, CHANGES_REQUESTED or COMMENTED.
func (w pulls) Review(repo string, number int, as, state, body string) (id int64, err error) {
	err = w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		if t.pull == nil || !slices.Contains([]string{"APPROVED", "CHANGES_REQUESTED", "COMMENTED"}, state) {
			return fmt.Errorf("review %s#%d as %s: it must be a pull request and APPROVED, CHANGES_REQUESTED or COMMENTED", repo, number, state)
		}
		id = w.addReview(r, t, by, state, body, t.pull.headSHA).id
		return nil
	})
	return id, err
}

// Dismiss dismisses a review.
func (w pulls) Dismiss(repo string, number int, as string, id int64) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		for _, v := range t.pull.reviews {
			if v.id != id {
				continue
			}
			v.state, t.updated = "DISMISSED", w.now()
			rendered := w.renderReview(r, t, v)
			rendered["state"] = "dismissed"
			w.emit("pull_request_review", r, by, obj{"action": "dismissed", "review": rendered, "pull_request": w.renderPullSimple(r, t)})
			return nil
		}
		return fmt.Errorf("%s#%d has no review %d", repo, number, id)
	})
}

// ReviewComment comments on a line of the new side. Like GitHub, it also creates a review (state COMMENTED, no text),
// so it sends two events (reported by consumers).
func (w pulls) ReviewComment(ctx context.Context, repo string, number int, as, file string, line int, body string) (id int64, err error) {
	return w.ReviewCommentOn(ctx, repo, number, as, "", file, line, body)
}

// ReviewCommentOn comments on a line in a commit; empty means the head.
func (w pulls) ReviewCommentOn(ctx context.Context, repo string, number int, as, commit, file string, line int, body string) (id int64, err error) {
	err = w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		if t.pull == nil {
			return fmt.Errorf("%s#%d is an issue, not a pull request", repo, number)
		}
		commit = cmp.Or(commit, t.pull.headSHA)
		hunk, err := r.hunk(ctx, t.pull.baseSHA, commit, file)
		if err != nil {
			return err
		}
		v, now := w.addReview(r, t, by, "COMMENTED", "", commit), w.now()
		m := &reviewComment{comment: comment{id: w.newID(), author: by, body: body, created: now, updated: now},
			review: v.id, path: file, line: line, hunk: hunk, commit: commit}
		t.pull.comments = append(t.pull.comments, m)
		t.updated, id = now, m.id
		w.emit("pull_request_review_comment", r, by, obj{"action": "created", "comment": w.renderReviewComment(r, t, m),
			"pull_request": w.renderPullSimple(r, t)})
		return nil
	})
	return id, err
}
