package fakegithub

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// act locks the world for something a person does; call what it returns when
// it is done.
func (s *Server) act() (done func()) {
	s.mu.Lock()
	return func() {
		s.mu.Unlock()
		s.changed.ring()
	}
}

// AddUser makes a person. Roles are none, read, triage, write, maintain or
// admin by "owner/name"; the repositories must exist. An owner of repositories
// may be made with AddUser before AddRepo; otherwise owners are organizations.
func (s *Server) AddUser(login string, id int64, roles map[string]string) error {
	return s.addAccount(login, id, "User", roles)
}

// AddBot makes the bot account of some other App, such as "dependabot[bot]".
func (s *Server) AddBot(login string, id int64) error { return s.addAccount(login, id, "Bot", nil) }

func (s *Server) addAccount(login string, id int64, kind string, roles map[string]string) error {
	defer s.act()()
	key := strings.ToLower(login)
	if s.world.accounts[key] != nil {
		return fmt.Errorf("the account %q exists already", login)
	}
	s.world.accounts[key] = &account{id: id, login: login, kind: kind}
	for full, role := range roles {
		if err := s.setRole(full, login, role); err != nil {
			return err
		}
	}
	return nil
}

// SetRole changes what a person may do in a repository.
func (s *Server) SetRole(repo, login, role string) error {
	defer s.act()()
	return s.setRole(repo, login, role)
}

func (s *Server) setRole(full, login, role string) error {
	r, err := s.world.repo(full)
	if err != nil {
		return err
	}
	if rank(role) < 0 {
		return fmt.Errorf("no role %q: use one of none, read, triage, write, maintain, admin", role)
	}
	r.roles[strings.ToLower(login)] = role
	return nil
}

// AddRepo makes a repository with one commit of these files on main, or without
// commits when files is empty, and installs the App on it.
func (s *Server) AddRepo(ctx context.Context, full string, files map[string]string) error {
	defer s.act()()
	owner, name, ok := strings.Cut(full, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("repository name %q: use owner/name", full)
	}
	if s.world.repos[strings.ToLower(full)] != nil {
		return fmt.Errorf("the repository %q exists already", full)
	}
	holder := s.world.accounts[strings.ToLower(owner)]
	if holder == nil {
		holder = &account{id: s.world.newID(), login: owner, kind: "Organization"}
		s.world.accounts[strings.ToLower(owner)] = holder
	}
	r := s.newRepository(holder, name)
	if err := r.git.create(ctx, r.defaultBranch); err != nil {
		return err
	}
	if len(files) > 0 {
		if _, err := s.writeCommit(ctx, r, holder, Commit{Branch: "main", Message: "Initial commit", Files: files}); err != nil {
			return err
		}
		var err error
		if r.branches, err = r.git.refs(ctx); err != nil {
			return err
		}
	}
	s.world.repos[strings.ToLower(full)] = r
	s.install(r)
	return nil
}

func (s *Server) newRepository(owner *account, name string) *repository {
	id, now := s.world.newID(), s.now()
	return &repository{id: id, owner: owner, name: name, defaultBranch: "main", created: now, pushed: now,
		git: bare{dir: filepath.Join(s.dir, fmtID(id)+".git"), home: s.dir}, roles: map[string]string{}, branches: map[string]string{}}
}

// RenameRepo gives a repository a new name; the former one redirects.
func (s *Server) RenameRepo(repo, name string) error {
	defer s.act()()
	r, err := s.world.repo(repo)
	if err != nil {
		return err
	}
	from := r.name
	r.name = name
	s.world.repos[strings.ToLower(r.fullName())] = r
	s.emit("repository", r, r.owner, obj{"action": "renamed", "changes": obj{"repository": obj{"name": obj{"from": from}}}})
	return nil
}

// DeleteRepo makes a repository disappear.
func (s *Server) DeleteRepo(repo string) error {
	defer s.act()()
	r, err := s.world.repo(repo)
	if err != nil {
		return err
	}
	s.emit("repository", r, r.owner, obj{"action": "deleted"})
	r.deleted = true
	return nil
}

// Ping sends the event that GitHub sends when a webhook is set up.
func (s *Server) Ping() {
	defer s.act()()
	app := s.renderApp(s.world.app)
	s.courier.add(newDelivery("ping", obj{"zen": "Keep it logically awesome.", "hook_id": hookID, "hook": obj{"type": "App",
		"id": hookID, "name": "web", "active": true, "app_id": s.world.app.id, "events": app["events"], "config": s.hookConfig(),
		"created_at": app["created_at"], "updated_at": app["updated_at"], "deliveries_url": s.APIURL() + "app/hook/deliveries"}}, 0, 0))
}

// AddOtherApp makes another App, such as a CI service, that can write check runs.
func (s *Server) AddOtherApp(slug string, id int64) {
	defer s.act()()
	s.world.otherApps[slug] = s.world.newApp(id, slug, map[string]string{"checks": "write"}, s.now())
}

// Repos lists the names of all repositories that exist.
func (s *Server) Repos() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := map[string]bool{}
	for _, r := range s.world.repos {
		if !r.deleted {
			names[r.fullName()] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}
