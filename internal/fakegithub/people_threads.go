package fakegithub

import (
	"errors"
	"fmt"
	"slices"
)

// The methods in this file act as a person, named by login, on issues and pull
// requests. They do not ask for permission: a test decides who may do what.

// on finds what most acts need.
func (s *Server) on(repo string, number int, login string) (*repository, *thread, *account, error) {
	r, err := s.world.repo(repo)
	if err != nil {
		return nil, nil, nil, err
	}
	t, err := r.thread(number)
	if err != nil {
		return nil, nil, nil, err
	}
	by, err := s.world.account(login)
	return r, t, by, err
}

// OpenIssue opens an issue and returns its number.
func (s *Server) OpenIssue(repo, as, title, body string, labels ...string) (int, error) {
	defer s.act()()
	r, err := s.world.repo(repo)
	if err != nil {
		return 0, err
	}
	by, err := s.world.account(as)
	if err != nil {
		return 0, err
	}
	return s.openIssue(r, by, nil, title, body, labels).number, nil
}

// Comment writes a comment and returns its id.
func (s *Server) Comment(repo string, number int, as, body string) (int64, error) {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err != nil {
		return 0, err
	}
	return s.addComment(r, t, by, nil, body).id, nil
}

// EditComment changes the text of a comment.
func (s *Server) EditComment(repo string, id int64, as, body string) error {
	defer s.act()()
	return s.withComment(repo, id, as, func(r *repository, t *thread, m *comment, by *account) { s.editComment(r, t, m, by, body) })
}

// DeleteComment removes a comment.
func (s *Server) DeleteComment(repo string, id int64, as string) error {
	defer s.act()()
	return s.withComment(repo, id, as, s.dropComment)
}

func (s *Server) withComment(repo string, id int64, as string, do func(*repository, *thread, *comment, *account)) error {
	r, err := s.world.repo(repo)
	if err != nil {
		return err
	}
	t, m := r.comment(id)
	if m == nil {
		return fmt.Errorf("no comment %d in %s", id, repo)
	}
	by, err := s.world.account(as)
	if err != nil {
		return err
	}
	do(r, t, m, by)
	return nil
}

// EditBody changes the description. With the same text it is a re-save, which
// sends an edited event whose old text equals the new one.
func (s *Server) EditBody(repo string, number int, as, body string) error {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err == nil {
		s.editTexts(r, t, nil, &body, by, true)
	}
	return err
}

// EditTitle changes the title.
func (s *Server) EditTitle(repo string, number int, as, title string) error {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err == nil {
		s.editTexts(r, t, &title, nil, by, false)
	}
	return err
}

// TouchIssue moves updated_at without changing any text: the person assigns
// themselves, or, when assigned, leaves. GitHub sends assigned or unassigned.
func (s *Server) TouchIssue(repo string, number int, as string) error {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err != nil {
		return err
	}
	t.updated = s.now()
	action := "assigned"
	if slices.Contains(t.assignees, by) {
		action = "unassigned"
		t.assignees = slices.DeleteFunc(t.assignees, func(a *account) bool { return a == by })
	} else {
		t.assignees = append(t.assignees, by)
	}
	s.emitThread(r, t, action, by, obj{"assignee": s.renderUser(by)})
	return nil
}

// AddLabel puts a label on an issue or pull request.
func (s *Server) AddLabel(repo string, number int, as, label string) error {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err == nil {
		s.addLabel(r, t, label, by)
	}
	return err
}

// RemoveLabel takes a label off.
func (s *Server) RemoveLabel(repo string, number int, as, label string) error {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	if err == nil && slices.Contains(t.labels, label) {
		s.dropLabel(r, t, label, by)
	}
	return err
}

// CloseIssue closes an issue or, without merging, a pull request.
func (s *Server) CloseIssue(repo string, number int, as string) error {
	return s.turn(repo, number, as, "closed")
}

// ReopenIssue opens a closed issue or pull request again.
func (s *Server) ReopenIssue(repo string, number int, as string) error {
	return s.turn(repo, number, as, "open")
}

func (s *Server) turn(repo string, number int, as, state string) error {
	defer s.act()()
	r, t, by, err := s.on(repo, number, as)
	switch {
	case err != nil:
		return err
	case t.state == state:
		return fmt.Errorf("%s#%d is %s already", repo, number, state)
	case t.pull != nil && !t.pull.mergedAt.IsZero():
		return errors.New("a merged pull request stays closed")
	case t.pull != nil && state == "open" && t.pull.headGone() != "":
		return fmt.Errorf("reopen %s#%d: %s", repo, number, t.pull.headGone())
	}
	s.setState(r, t, state, "completed", by)
	return nil
}
