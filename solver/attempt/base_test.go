package attempt

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
)

func TestFailureIsComparedWithTheBaseAndASecondRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, command, agent string
		passed               bool
		want                 policy.Verified
	}{
		{"a failure as on the base", `echo "not ok 1 - $(head -n 1 a.txt)"; exit 1`, "echo two >> a.txt\n", true, policy.Verified{Known: []string{"one"}}},
		{"a new failure", `grep one a.txt && echo ok 1 - first || { echo not ok 1 - first; exit 1; }`, "echo two > a.txt\n", false,
			policy.Verified{}},
		{"a fixed test", `grep two a.txt && echo ok 1 - first || { echo not ok 1 - first; exit 1; }`, "echo two > a.txt\n", true,
			policy.Verified{Fixed: []string{"first"}}},
		{"a failure that passes in the second run", `echo x >> $CTRL/runs; test $(wc -l < $CTRL/runs) != 2 || { echo not ok 1 - flaky; exit 1; }; echo ok 1 - flaky`,
			"echo two > a.txt\n", true,
			policy.Verified{Flaky: []string{"flaky"}}},
		// Many projects' commands prefer tools in the repository or in HOME.
		{"the agent left a tool that passes", `PATH="$PWD/bin:$HOME/bin:$PATH"; checker || ! grep two a.txt`,
			"echo two > a.txt; for d in bin $HOME/bin; do mkdir -p $d; echo '#!/bin/sh' > $d/checker; chmod +x $d/checker; done\n", false,
			policy.Verified{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, verifying(c.command, nil))
			s.agent(c.agent, "")
			v := s.attempt(1).Verify[0]
			got := strings.Join([]string{strings.Join(v.Known, " "), strings.Join(v.Fixed, " "), strings.Join(v.Flaky, " ")}, "; ")
			want := strings.Join([]string{strings.Join(c.want.Known, " "), strings.Join(c.want.Fixed, " "), strings.Join(c.want.Flaky, " ")}, "; ")
			if v.Passed != c.passed || got != want {
				t.Errorf("passed %v; known, fixed and flaky %q; want %v, %q\n%s", v.Passed, got, c.passed, want, v.Output)
			}
		})
	}
}

func TestMergeBeforeThePushIsVerified(t *testing.T) {
	t.Parallel()
	s := newStage(t, verifying("! test -e theirs.txt || ! grep -q mine a.txt", nil))
	s.agent("[ -e $CTRL/theirs ] || { echo more >> a.txt; exit 0; }\necho mine >> a.txt; sh $CTRL/theirs\n", "")
	s.attempt(1)
	push := "cd " + s.origin + "; git checkout -q " + branchOf(1) + "; echo theirs > theirs.txt; git add .\n" +
		"git -c user.name=b -c user.email=b@example.com commit -qm Theirs; git checkout -q main\n"
	s.must(os.WriteFile(filepath.Join(s.ctrl, "theirs"), []byte(push), 0o600))
	if r := s.attempt(1); !r.Merged || r.Outcome != policy.VerifyFailed {
		t.Errorf("merged %v, %s; want the conflicting changes to fail", r.Merged, r.Outcome)
	}
}

func TestOnlyTheBasesVerificationFillsTheLayer(t *testing.T) {
	t.Parallel()
	// Each run records the contents of HOME, and adds to them.
	s := newStage(t, verifying(`tr '\n' ' ' < "$HOME/seen" >> $CTRL/seen; tail -n 1 a.txt >> "$HOME/seen"; echo / >> $CTRL/seen`, nil))
	s.agent("echo $PWD > \"$HOME/seen\"; echo two >> a.txt\n", "")
	s.attempt(1)
	s.attempt(2)
	if got := s.left("seen"); got != "/\none /\none /\n" {
		t.Errorf("found in HOME: %q; want nothing on the base, then only the base's line", got)
	}
}

func TestLockFileSelectsTheLayer(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]string{"a.txt": "one\n", ".gitignore": "deps/\n", "package-lock.json": "first\n",
		config.RepoFile: "environment: {setup: ['echo x >> $CTRL/setups; mkdir deps; cp package-lock.json deps/; ! grep broken package-lock.json']}\nverify: [cmp deps/package-lock.json package-lock.json]\n"})
	s.agent("echo more >> a.txt; cp deps/package-lock.json seen.txt\n", "")
	var keys []string
	for i, step := range []struct {
		lock    string
		setups  int
		refused bool
	}{{"first\n", 1, false}, {"second\n", 2, false}, {"broken\n", 3, true}, {"broken\n", 3, true}, {"second\n", 3, false}, {"first\n", 3, false}} {
		if i > 0 {
			s.push(map[string]string{"package-lock.json": step.lock, "more.txt": strings.Repeat("x", i)})
		}
		a, refused := s.tried(i + 1)
		if got := strings.Count(s.left("setups"), "x"); (refused != nil) != step.refused || got != step.setups {
			t.Fatalf("step %d: refused %+v after %d setups; want %v after %d", i, refused, got, step.refused, step.setups)
		}
		if refused != nil {
			if refused.Rule != policy.RuleSetupFailed {
				t.Errorf("refused by %s", refused.Rule)
			}
			continue
		}
		if seen := s.on(i+1, "seen.txt"); !a.Receipt.Verify[0].Passed || seen != step.lock {
			t.Errorf("step %d: %+v, the agent saw %q; want the setup's result for %q", i, a.Receipt.Verify, seen, step.lock)
		}
		keys = append(keys, s.ground.Layer.Key)
	}
	if keys[0] != keys[3] || keys[1] != keys[2] || keys[0] == keys[1] {
		t.Errorf("the layers are %q; want one for each lock file", keys)
	}
}

func TestAgentsFilesReachNoLayer(t *testing.T) {
	t.Parallel()
	for _, mode := range []sandbox.Mode{sandbox.Auto, sandbox.None} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			if mode == sandbox.Auto {
				needs.All(t, "bubblewrap")
			}
			s := newStage(t, map[string]string{"a.txt": "one\n", ".gitignore": "deps/\n",
				config.RepoFile: "environment: {setup: ['mkdir -p deps/lib; echo good | tee deps/lib/dep > \"$HOME/cache\"']}\nverify: ['grep -qx good deps/lib/dep && grep -qx good \"$HOME/cache\" && test ! -e deps/more']\n"})
			// Each agent reports the files it finds, then damages them.
			s.agent(`cat deps/lib/dep "$HOME/cache" >> a.txt
[ `+string(mode)+` = none ] || { mount -o remount,rw /; umount -l "$HOME"; umount -l "$PWD"; }
echo evil > deps/lib/dep; echo evil > "$HOME/cache"; echo evil > deps/more; mkdir -p "$HOME/bin"; echo evil > "$HOME/bin/go"
rm -f deps/lib/dep; mv deps gone; ln -s /etc deps
true
`, "\nsandbox: {mode: "+string(mode)+", read_only: ["+s.ctrl+"]}\n")
			for issue := 1; issue <= 2; issue++ {
				r, text := s.attempt(issue), s.on(issue, "a.txt")
				if what := r.VerifiedWords(""); !r.CommandsPassed() || text != "one\ngood\ngood\n" {
					t.Errorf("%s %q, a.txt %q; want the good layer in every attempt and verification", what, r.Reasons, text)
				}
			}
		})
	}
}

func TestOnlySetupGetsItsSecrets(t *testing.T) {
	t.Setenv("LAYERS_TEST_TOKEN", "a-secret-of-the-registry")
	for _, repo := range []string{"acme/widgets", "acme/other"} {
		s := newStage(t, map[string]string{"a.txt": "one\n", ".gitignore": "deps/\n", config.RepoFile: "environment: {setup: ['echo \"token ${LAYERS_TEST_TOKEN:-none}\"; mkdir deps; " +
			"echo \"${#LAYERS_TEST_TOKEN}\" > deps/length; test ! -e package-lock.json'], env: {SET: here}}\nverify: ['test -z \"$LAYERS_TEST_TOKEN\" && test \"$SET\" = here']\n"})
		s.agent("{ cat deps/length; echo \"$SET\"; env | grep -c a-secret; } >> a.txt; true\n", "\nsetup: {secrets: [{env: [LAYERS_TEST_TOKEN], repositories: ["+repo+"]}]}\n")
		given := repo == "acme/widgets"
		r, text, want := s.attempt(1), s.on(1, "a.txt"), map[bool]string{true: "one\n24\nhere\n0\n", false: "one\n0\nhere\n0\n"}[given]
		if text != want || !r.Verify[0].Passed {
			t.Errorf("secrets for %s: a.txt %q, %+v, want %q and verified", repo, text, r.Verify, want)
		}
		s.push(map[string]string{"package-lock.json": "{}\n"}) // the setup fails
		_, refused := s.tried(2)
		said := map[bool]string{true: "token [hidden: LAYERS_TEST_TOKEN]", false: "token none"}[given]
		if refused == nil || !strings.Contains(refused.Output, said) || strings.Contains(refused.Output, "a-secret") {
			t.Errorf("secrets for %s: refused %+v, want an output with %q", repo, refused, said)
		}
	}
}

// Two failures at the same place are the same failure, even if their output differs in values.
func TestSameFailureIsRecognised(t *testing.T) {
	t.Parallel()
	trace := func(function, message string) map[string]string {
		return verifying(`n=$(wc -l < a.txt); printf 'Traceback (most recent call last):\n  File "/srv/%s/cart.py", line 4%s, in %s\nValueError: %s\n' `+
			`$$ $n "`+function+`" "`+message+`"; test $n = 1`, nil)
	}
	const words = `$(echo cannot read banana while peeling seven wooden ladders near green harbours | cut -d ' ' -f $((n*3-2))-$((n*3)))`
	for _, c := range []struct {
		name  string
		files map[string]string
		agent string
		same  bool
	}{
		{"a crash with different ids", map[string]string{"a.txt": "one\n"},
			`n=$$; echo "worker[$n]: upstream refused request req_0$n on port 4${n} after $n.5s, see /tmp/run$n/trace.log" >&2; exit 3`, true},
		{"different words at the same place", trace("total", words), "", true},
		{"the same words from elsewhere", trace("step$n", "the very same words of a message"), "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, c.files)
			s.agent("echo more >> a.txt; head -c 90 /dev/urandom | base64 > \"file$(wc -l < a.txt).txt\"\n"+c.agent+"\n", "")
			first, second := policy.Attempt{Receipt: s.attempt(1)}, policy.Attempt{Receipt: s.attempt(1)}
			if got := policy.Stagnation([]policy.Attempt{first, second}, 0, policy.Defaults()); (got.Similar > 0) != c.same {
				t.Errorf("%s and %s: %+v, want them similar: %v", first.Outcome, second.Outcome, got, c.same)
			}
		})
	}
}

func TestProgramsSeeTagsAndTheBase(t *testing.T) {
	t.Parallel()
	const versions = `git describe --long --match 'v*' | grep '^v1.2.0-' && git rev-list --count origin/main..HEAD`
	s := newStage(t, map[string]string{"a.txt": "a\n", ".github/pawl.yml": "environment: {setup: [sh version.sh]}\nverify: [sh version.sh]\n", "version.sh": versions + "\n"})
	s.git("tag", "--annotate", "--message=1.2", "v1.2.0")
	for n := range 60 {
		s.push(map[string]string{"n.txt": strconv.Itoa(n)})
	}
	s.agent("sh version.sh > \"$CTRL/said\" && echo b > a.txt\n", "")
	r := s.attempt(1)
	if len(r.Verify) != 1 || !strings.Contains(r.Verify[0].Output, "v1.2.0-61-g") || !strings.HasSuffix(strings.TrimSpace(r.Verify[0].Output), "\n1") {
		t.Errorf("%+v, want 61 commits since the tag and one since main", r.Verify)
	}
	output, err := os.ReadFile(filepath.Join(s.ctrl, "said"))
	if err != nil || !strings.HasPrefix(string(output), "v1.2.0-60-g") || !strings.HasSuffix(string(output), "\n0\n") {
		t.Errorf("the agent finds %q, %v", output, err)
	}
}
