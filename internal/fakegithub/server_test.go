package fakegithub_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestCloseLeavesNothingBehind(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Setenv("TMPDIR", t.TempDir())
	s, err := fakegithub.New(fakegithub.Options{})
	must(t, err)
	must(t, s.AddRepo(t.Context(), repo, map[string]string{"a": "b"}))
	must(t, s.WaitDelivered(t.Context()))
	client := &http.Client{Transport: &http.Transport{}}
	resp, err := client.Get(s.APIURL() + "app")
	must(t, err)
	resp.Body.Close()
	client.CloseIdleConnections()
	must(t, s.Close())
	if left, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*")); err != nil || len(left) != 0 {
		t.Fatalf("left behind: %v %v", left, err)
	}
	goleak.VerifyNone(t, before)
}

func TestMistakesInATestReturnErrors(t *testing.T) {
	h := newHouse(t)
	_, err := h.OpenIssue(repo, "rita", "an issue", "")
	must(t, err)
	for words, err := range map[string]error{
		"call AddRepo first": h.AddLabel("acme/gone", 1, "wendy", "x"),
		"call AddUser first": h.AddLabel(repo, 1, "nobody", "x"),
		"no issue or pull":   h.AddLabel(repo, 9, "wendy", "x"),
		"exists already":     h.AddRepo(h.ctx, repo, nil),
		"use owner/name":     h.AddRepo(h.ctx, "tools", nil),
		"no role":            h.SetRole(repo, "wendy", "emperor"),
		"call AddOtherApp":   func() error { _, err := h.CompleteCheckRun(repo, "ci", fakegithub.CheckResult{}); return err }(),
		"No commits between": func() error {
			_, err := h.OpenPull(h.ctx, repo, "wendy", fakegithub.PullRequest{Title: "t", Head: "main"})
			return err
		}(),
		"no delivery":          h.Redeliver("00000000-0000-0000-0000-000000000000"),
		"an issue, not a pull": func() error { _, err := h.ReviewComment(h.ctx, repo, 1, "wendy", "a", 1, "x"); return err }(),
	} {
		if err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("got %v, want %q", err, words)
		}
	}
}
