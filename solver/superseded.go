package solver

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
)

// leaveCommits ends the check runs of commits that were the head before: the one
// of an attempt that was shown there as going on, and one that a process began
// to make and did not live to log. Without that they would go on for ever.
func (s *step) leaveCommits(ctx context.Context, head string) error {
	for _, key := range slices.Sorted(maps.Keys(s.state.Acts)) {
		old := s.state.Acts[key]
		name, sha, ok := checkOf(key)
		if !ok || sha == head || old.Done && !old.Going {
			continue
		}
		if err := s.leaveCheck(ctx, key, name, sha, head, old); err != nil {
			return err
		}
	}
	return nil
}

// checkOf reads the key of a check run.
func checkOf(key string) (name, sha string, ok bool) {
	rest, ok := strings.CutPrefix(key, "check:")
	if !ok {
		return "", "", false
	}
	return strings.Cut(rest, ":")
}

// leaveCheck ends one check run, as far as it is there.
func (s *step) leaveCheck(ctx context.Context, key, name, sha, head string, old ActState) error {
	c := checkrun.Check{
		Name: name, ExternalID: checkrun.ExternalID(s.thread.String(), name), Status: checkrun.Completed, Conclusion: checkrun.Neutral,
		Title:   "Went on at " + head[:min(len(head), 10)],
		Summary: fmt.Sprintf("The branch is at %s now, and the check run there tells how it stands.", head),
	}
	id := old.ID
	if !old.Done {
		found, ok, err := s.Forge.FindCheckRun(ctx, s.repo(), sha, name, c.ExternalID)
		if err != nil && !s.unknown(ctx, err) {
			return fmt.Errorf("look up %s: %w", key, err)
		}
		if id = found.ID; !ok || err != nil {
			return s.acted(ctx, key, Act{SHA: sha, Note: "it was never made"})
		}
	}
	done, err := s.Forge.UpdateCheckRun(ctx, s.repo(), id, wire(c, sha, s.threadURL()), nil)
	if err != nil && s.unknown(ctx, err) {
		return s.acted(ctx, key, Act{SHA: sha, Note: err.Error()})
	}
	if err != nil {
		return fmt.Errorf("end %s: %w", key, err)
	}
	return s.acted(ctx, key, Act{ID: done.ID, URL: done.HTMLURL, SHA: sha})
}

// unknown reports whether an error says that GitHub does not know the commit or
// the check run any more, as after a force push.
func (s *step) unknown(ctx context.Context, err error) bool {
	return errors.Is(err, forge.ErrInvalid) || s.deleted(ctx, err)
}
