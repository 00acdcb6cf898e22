package fakegithub

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Commit is what a person pushes.
type Commit struct {
	Branch  string
	Message string
	// Files are added or replaced; a content that starts with "#!" is executable.
	Files map[string]string
	// Delete are paths to remove.
	Delete []string
	// From is the commit or branch to build on. Empty means the branch itself,
	// or the default branch if it does not exist yet. Setting it for a branch
	// that exists rewrites the branch, which is a force push.
	From string
}

// PushCommit writes a commit as a person and returns its id.
func (s *Server) PushCommit(ctx context.Context, repo, as string, c Commit) (string, error) {
	r, by, done, err := s.pusher(repo, as)
	if err != nil {
		return "", err
	}
	defer done()
	sha, err := s.writeCommit(ctx, r, by, c)
	if err != nil {
		return "", err
	}
	return sha, s.refsMoved(ctx, r, by)
}

// pusher takes the locks of a push, those of git before those of the world.
func (s *Server) pusher(repo, as string) (*repository, *account, func(), error) {
	s.mu.Lock()
	r, errRepo := s.world.repo(repo)
	by, errBy := s.world.account(as)
	s.mu.Unlock()
	if err := errors.Join(errRepo, errBy); err != nil {
		return nil, nil, nil, err
	}
	r.pushing.Lock()
	done := s.act()
	return r, by, func() { done(); r.pushing.Unlock() }, nil
}

// writeCommit feeds git fast-import, which needs no checkout.
func (s *Server) writeCommit(ctx context.Context, r *repository, by *account, c Commit) (string, error) {
	from := c.From
	if sha := r.branches[from]; sha != "" {
		from = sha
	}
	if from == "" {
		from = r.branches[c.Branch]
	}
	if from == "" {
		from = r.branches[r.defaultBranch]
	}
	var in bytes.Buffer
	fmt.Fprintf(&in, "commit refs/heads/%s\ncommitter %s <%s> %d +0000\n", c.Branch, by.login, email(by), s.now().Unix())
	data(&in, c.Message)
	if from != "" {
		fmt.Fprintf(&in, "from %s\n", from)
	}
	for _, path := range slices.Concat(slices.Collect(maps.Keys(c.Files)), c.Delete) {
		if strings.ContainsAny(path, "\"\n") {
			return "", fmt.Errorf("path %q: quotes and line breaks are not supported here", path)
		}
	}
	for _, path := range c.Delete {
		fmt.Fprintf(&in, "D %s\n", path)
	}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		mode := "100644"
		if strings.HasPrefix(c.Files[path], "#!") {
			mode = "100755"
		}
		fmt.Fprintf(&in, "M %s inline %s\n", mode, path)
		data(&in, c.Files[path])
	}
	if _, err := r.git.run(ctx, in.Bytes(), "fast-import", "--quiet", "--force"); err != nil {
		return "", err
	}
	_, sha, err := r.git.object(ctx, "refs/heads/"+c.Branch)
	return sha, err
}

func data(in *bytes.Buffer, text string) { fmt.Fprintf(in, "data %d\n%s\n", len(text), text) }

// DeleteBranch removes a branch as a person.
func (s *Server) DeleteBranch(ctx context.Context, repo, as, branch string) error {
	r, by, done, err := s.pusher(repo, as)
	if err != nil {
		return err
	}
	defer done()
	if r.branches[branch] == "" {
		return fmt.Errorf("no branch %s in %s", branch, repo)
	}
	return s.moveRef(ctx, r, by, "refs/heads/"+branch, "")
}

// PullRequest is what a person opens.
type PullRequest struct {
	Title, Body, Head, Base string // Base is the default branch when empty
	Draft                   bool
}

// OpenPull opens a pull request and returns its number.
func (s *Server) OpenPull(ctx context.Context, repo, as string, p PullRequest) (int, error) {
	r, by, done, err := s.pusher(repo, as)
	if err != nil {
		return 0, err
	}
	defer done()
	if p.Base == "" {
		p.Base = r.defaultBranch
	}
	t, bad := s.openPull(ctx, r, by, nil, pullWish(p))
	if bad != nil {
		return 0, fmt.Errorf("open a pull request in %s: %s", repo, bad)
	}
	return t.number, nil
}

// ClosePull closes a pull request without merging it.
func (s *Server) ClosePull(repo string, number int, as string) error {
	return s.turn(repo, number, as, "closed")
}

// MarkReady turns a draft into a pull request that is ready for review.
func (s *Server) MarkReady(repo string, number int, as string) error {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err != nil {
		return err
	}
	if t.pull == nil || !t.pull.draft {
		return fmt.Errorf("%s#%d is not a draft", repo, number)
	}
	t.pull.draft, t.updated = false, s.now()
	s.emitThread(r, t, "ready_for_review", by, nil)
	return nil
}

// MergePull merges with a merge commit and returns its id.
func (s *Server) MergePull(ctx context.Context, repo string, number int, as string) (string, error) {
	r, by, done, err := s.pusher(repo, as)
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
	message := fmt.Sprintf("Merge pull request #%d from %s/%s\n\n%s\n", number, t.pull.from.owner.login, t.pull.headRef, t.title)
	out, err := r.git.run(ctx, []byte(message), "-c", "user.name="+by.login, "-c", "user.email="+email(by),
		"commit-tree", strings.TrimSpace(string(tree)), "-p", base, "-p", t.pull.headSHA)
	if err != nil {
		return "", err
	}
	sha := strings.TrimSpace(string(out))
	t.pull.mergedAt, t.pull.mergedBy, t.pull.mergeSHA = s.now(), by, sha
	s.setState(r, t, "closed", "", by)
	return sha, s.moveRef(ctx, r, by, "refs/heads/"+t.pull.baseRef, sha)
}

// Review submits a review; state is APPROVED, CHANGES_REQUESTED or COMMENTED.
func (s *Server) Review(repo string, number int, as, state, body string) (int64, error) {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err != nil {
		return 0, err
	}
	if t.pull == nil || !slices.Contains([]string{"APPROVED", "CHANGES_REQUESTED", "COMMENTED"}, state) {
		return 0, fmt.Errorf("review %s#%d as %s: it must be a pull request and APPROVED, CHANGES_REQUESTED or COMMENTED", repo, number, state)
	}
	return s.addReview(r, t, by, state, body).id, nil
}

// ReviewComment remarks on one line. As at GitHub it comes with a review of its
// own, state COMMENTED and no text, and so with two events (reported by
// consumers; the documents only say that every review comment has a review).
func (s *Server) ReviewComment(ctx context.Context, repo string, number int, as, file string, line int, body string) (int64, error) {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err != nil {
		return 0, err
	}
	if t.pull == nil {
		return 0, fmt.Errorf("%s#%d is an issue, not a pull request", repo, number)
	}
	m, err := s.addReviewComment(ctx, r, t, s.addReview(r, t, by, "COMMENTED", ""), file, line, body)
	if err != nil {
		return 0, err
	}
	return m.id, nil
}
