package fakegithub

import (
	"fmt"
	"time"
)

// install adds a repository to the installation of its owner, which is made if
// there is none.
func (s *Server) install(r *repository) {
	stub := stubs(r)
	for _, in := range s.world.installations {
		if in.account == r.owner && !in.removed {
			in.repos[r.id] = true
			s.emitApp("installation_repositories", in, r.owner, obj{"action": "added", "repository_selection": "selected",
				"repositories_added": stub, "repositories_removed": []obj{}, "requester": nil})
			return
		}
	}
	in := &installation{id: s.world.newID(), account: r.owner, repos: map[int64]bool{r.id: true}, created: s.now()}
	s.world.installations = append(s.world.installations, in)
	s.emitApp("installation", in, r.owner, obj{"action": "created", "repositories": stub, "requester": nil})
}

// stubs are the short repositories of installation events.
func stubs(repos ...*repository) []obj {
	list := []obj{}
	for _, r := range repos {
		list = append(list, obj{"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "private": !r.public})
	}
	return list
}

// Install puts the App back on a repository after Uninstall or RemoveRepo.
func (s *Server) Install(repo string) error {
	defer s.act()()
	r, err := s.world.repo(repo)
	if err == nil && s.world.installationOf(r) == nil {
		s.install(r)
	}
	return err
}

// InstallationID is the id of the installation that covers a repository.
func (s *Server) InstallationID(repo string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, in, err := s.installed(repo)
	if err != nil {
		return 0, err
	}
	return in.id, nil
}

func (s *Server) installed(repo string) (*repository, *installation, error) {
	r, err := s.world.repo(repo)
	if err != nil {
		return nil, nil, err
	}
	in := s.world.installationOf(r)
	if in == nil {
		return nil, nil, fmt.Errorf("the App is not installed on %s", repo)
	}
	return r, in, nil
}

// Uninstall removes the App from the owner of a repository altogether.
func (s *Server) Uninstall(repo string) error {
	defer s.act()()
	r, in, err := s.installed(repo)
	if err != nil {
		return err
	}
	in.removed = true
	s.emitApp("installation", in, r.owner, obj{"action": "deleted", "repositories": stubs(s.world.reposOf(in)...), "requester": nil})
	return nil
}

// RemoveRepo takes one repository out of the installation.
func (s *Server) RemoveRepo(repo string) error {
	defer s.act()()
	r, in, err := s.installed(repo)
	if err != nil {
		return err
	}
	delete(in.repos, r.id)
	s.emitApp("installation_repositories", in, r.owner, obj{"action": "removed", "repository_selection": "selected",
		"repositories_added": []obj{}, "repositories_removed": stubs(r), "requester": nil})
	return nil
}

// Suspend pauses the installation that covers a repository; tokens answer 403
// and events stop.
func (s *Server) Suspend(repo string) error {
	defer s.act()()
	r, in, err := s.installed(repo)
	if err != nil {
		return err
	}
	in.suspended = s.now()
	s.emitApp("installation", in, r.owner, obj{"action": "suspend", "requester": nil})
	return nil
}

// Unsuspend ends the pause.
func (s *Server) Unsuspend(repo string) error {
	defer s.act()()
	r, in, err := s.installed(repo)
	if err != nil {
		return err
	}
	in.suspended = time.Time{}
	s.emitApp("installation", in, r.owner, obj{"action": "unsuspend", "requester": nil})
	return nil
}
