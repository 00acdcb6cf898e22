package fakegithub

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Protect makes a branch take changes through pull requests only: git pushes to
// it are refused, also those of Apps. MergePull and PushCommit still change it,
// the latter as an administrator who may bypass the rule.
func (s *Server) Protect(repo, branch string) error {
	defer s.act()()
	r, err := s.world.repo(repo)
	if err != nil || slices.Contains(r.protected, branch) {
		return err
	}
	r.protected = append(r.protected, branch)
	list := strings.Join(r.protected, "\n") + "\n"
	if err := os.WriteFile(filepath.Join(r.git.dir, "protected"), []byte(list), 0o644); err != nil {
		return fmt.Errorf("protect branch %s of %s: %w", branch, repo, err)
	}
	return nil
}
