package attempt

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestUnknownBranchsCommitsAreListedForAnyBase(t *testing.T) {
	for name, c := range map[string]struct {
		base string // the pull request's base
		def  bool   // the default branch exists
	}{
		"the default branch":                      {def: true},
		"another branch":                          {base: "release", def: true},
		"a deleted branch":                        {base: "gone", def: true},
		"a deleted branch, and no default branch": {base: "gone"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, map[string]string{"a.txt": "a"})
			s.git("branch", "release")
			s.git("switch", "--quiet", "-c", branchOf(7))
			s.push(map[string]string{"b.txt": "of somebody else"})
			s.git("switch", "--quiet", "main")
			if !c.def {
				s.git("switch", "--quiet", "--detach")
				s.git("branch", "-D", "main")
			}
			server, err := config.Parse("pawl.yml", []byte(s.yaml+"backends: [{name: mine, kind: command, argv: [true]}]\nsandbox: {mode: none}\n"), os.LookupEnv, false)
			s.must(err)
			s.env.Config = server
			s.env.Sandbox, err = sandbox.New(t.Context(), sandbox.None)
			s.must(err)
			g := &Ground{
				Lease: s.hold(7), Log: s.env.Log, Branch: branchOf(7), Unknown: true,
				Remote: func(context.Context, bool) (git.Remote, error) { return git.Remote{URL: s.origin}, nil },
			}
			id := thread.ID{Owner: "acme", Name: "widgets", Number: 7}
			_, err = g.Fetch(t.Context(), s.env, &server, id, thread.Details{DefaultBranch: "main", BaseRef: c.base}, nil)
			s.must(err)
			if len(g.Inherited) == 0 || !strings.HasSuffix(g.Inherited[0], "Change, by a") {
				t.Errorf("the branch contains %q", g.Inherited)
			}
		})
	}
}
