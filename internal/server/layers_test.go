package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// fromBay is the test's folder as a program finds it from its HOME in a setup or a verification.
const fromBay = `"$HOME/../../../../../../ctrl"`

// prepared is a repository with a setup that is counted in ctrl/setups, and a verify command. Its ignored folder deps
// and its HOME are what the setup makes.
func prepared(verify string, more ...string) map[string]string {
	files := map[string]string{"a.txt": "one\n", ".gitignore": "deps/\n*.tmp\n", "setup.sh": "echo x >> " + fromBay + "/setups\nmkdir -p deps/lib\ncat package-lock.json > deps/lib/dep\necho warm > \"$HOME/cache\"\necho one > note.tmp\n",
		"package-lock.json": "first\n", ".github/pawl.yml": "environment: {setup: [sh setup.sh]}\nverify: [" + fmt.Sprintf("%q", verify) + "]\n"}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// pushMain replaces files of the default branch.
func (r *rig) pushMain(files map[string]string) {
	r.T.Helper()
	_, err := r.World.PushCommit(r.T.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "main", Message: "Change", Files: files})
	r.Must(err)
}

func TestSetupRunsOnceForAllAttemptsAndVerifications(t *testing.T) {
	t.Parallel()
	r := newRig(t, prepared(`grep -q first deps/lib/dep && grep -q warm "$HOME/cache" && grep -q one note.tmp`))
	r.Agent("cat > /dev/null; cat deps/lib/dep \"$HOME/cache\" note.tmp >> a.txt\n", "")
	r.Config += "workers: 2\n"
	r.Start()
	base := r.World.Branches(testrig.Repo)["main"]
	var issues []int
	for i := range 3 {
		issues = append(issues, r.Solve(fmt.Sprintf("Line %d", i), "Please add what is set up to a.txt."))
		if i == 1 { // two at once, then one later
			r.Ending(issues[0])
			r.Ending(issues[1])
		}
	}
	for _, n := range issues {
		if s := r.Ending(n); s.State != "done" {
			t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
		}
		text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
		if l := r.Layer(n); err != nil || text != "one\nfirst\nwarm\none\n" || l.Key == "" || l.Key != r.Layer(issues[0]).Key || l.Commit != base {
			t.Errorf("issue %d: a.txt is %q (%v), layer %+v; want what setup left, and one layer of %s for all", n, text, err, l, base)
		}
	}
	if got := r.Left("setups"); got != "x\n" {
		t.Errorf("setups: %q, want one", got)
	}
	if being, was, _ := strings.Cut(r.Log.String(), "a layer is being built"); !strings.Contains(being, "pawl serves") || !strings.Contains(was, "a layer was built") {
		t.Error("the log does not say when a layer is being built, and when it was")
	}
}

func TestASetupThatFailsCostsNoAttemptAndIsRepeatedWhenSomebodyAsks(t *testing.T) {
	t.Parallel()
	r := newRig(t, prepared("true", "setup.sh", "echo x >> "+fromBay+"/setups; echo the registry says no to $TOKEN; test -e "+fromBay+"/mended"))
	r.Agent(testrig.PlainAgent, "")
	r.Config += "setup: {secrets: [{env: [LAYERS_TEST_TOKEN], repositories: [acme/widgets]}]}\n"
	r.Start()
	base := r.World.Branches(testrig.Repo)["main"]
	want := "Stopped: setup failed: sh setup.sh: exit code 1"
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	if s, c := r.Ending(n), r.Check(base, "pawl"); s.Rule != "setup_failed" || c.Title != want || c.Conclusion != "action_required" || !strings.Contains(c.Summary, "the registry says no") {
		t.Fatalf("%s (%s %q), check run %q (%s)\n%s", s.State, s.Rule, s.Reasons, c.Title, c.Conclusion, c.Summary)
	}
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "Please go on.")
	r.Must(err)
	r.Settle()
	other := r.Solve("A third line", "Please add a third line to a.txt.")
	if s := r.Ending(other); s.Rule != "setup_failed" || r.Left("setups") != "x\n" || r.Calls() != 0 {
		t.Fatalf("%s (%s), setups %q, %d calls; want the one failure to count for all", s.State, s.Rule, r.Left("setups"), r.Calls())
	}
	for _, mend := range []bool{false, true} {
		before := strings.Count(r.Left("setups"), "x")
		if mend {
			r.Touch("mended")
		}
		_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
		r.Must(err)
		r.Await("the setup", func() bool { return strings.Count(r.Left("setups"), "x") == before+1 })
		if s := r.Ending(n); (s.State == "done") != mend || r.Calls() != map[bool]int{true: 1}[mend] {
			t.Errorf("mended %v: %s (%s %q), %d calls", mend, s.State, s.Rule, s.Reasons, r.Calls())
		}
	}
	r.Settle()
	if got := r.Left("setups"); got != "x\nx\nx\n" {
		t.Errorf("setups: %q, want three", got)
	}
}

func TestALockFileDecidesWhichLayerIsUsedAndAFailureReplacesNone(t *testing.T) {
	t.Parallel()
	r := newRig(t, prepared(`cmp deps/lib/dep package-lock.json`, "setup.sh", "echo x >> "+fromBay+"/setups; mkdir -p deps/lib; cat package-lock.json > deps/lib/dep; ! grep -q broken package-lock.json"))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	var keys []string
	for _, step := range []struct {
		lock, state string
		setups      int
	}{{"", "done", 1}, {"second\n", "done", 2}, {"broken\n", "stopped", 3}, {"second\n", "done", 3}, {"first\n", "done", 3}} {
		if step.lock != "" {
			r.pushMain(map[string]string{"package-lock.json": step.lock})
		}
		n := r.Solve("A second line", "Please add a second line to a.txt, with "+step.lock)
		s := r.Ending(n)
		if got := strings.Count(r.Left("setups"), "x"); s.State != step.state || got != step.setups {
			t.Fatalf("lock file %q: %s (%s %q) after %d setups; want %s after %d", step.lock, s.State, s.Rule, s.Reasons, got, step.state, step.setups)
		}
		if step.state == "done" {
			keys = append(keys, r.Layer(n).Key)
		}
	}
	if keys[0] != keys[3] || keys[1] != keys[2] || keys[0] == keys[1] {
		t.Errorf("the layers are %q; want one for each lock file", keys)
	}
}

func TestWhatAnAgentWritesReachesNoLayer(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"auto", "none"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, map[string]string{"a.txt": "one\n", ".gitignore": "deps/\n",
				".github/pawl.yml": "environment: {setup: ['mkdir -p deps/lib; echo good | tee deps/lib/dep > \"$HOME/cache\"']}\nverify: ['grep -qx good deps/lib/dep && grep -qx good \"$HOME/cache\" && test ! -e deps/more']\n"})
			// Each agent says what it finds, then spoils all that it can, as far as it is no other agent's.
			r.Agent("", "")
			r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"), []byte(`#!/bin/sh
cat > /dev/null
cat deps/lib/dep "$HOME/cache" >> a.txt
mount -o remount,rw / ; umount -l "$HOME"; umount -l "$PWD"
echo evil > deps/lib/dep; echo evil > "$HOME/cache"; echo evil > deps/more; mkdir -p "$HOME/bin"; echo evil > "$HOME/bin/go"
rm -f deps/lib/dep; mv deps gone; ln -s /etc deps
true
`), 0o700))
			r.Config += "sandbox: {mode: " + mode + "}\n"
			r.Start()
			for i := range 2 {
				n := r.Solve(fmt.Sprintf("Line %d", i), "Please add what you find to a.txt.")
				s := r.Ending(n)
				text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
				if check := r.Check(r.World.Pulls(testrig.Repo)[i].Pull.HeadSHA, "pawl"); s.State != "done" || err != nil || text != "one\ngood\ngood\n" || check.Title != "Done: verified" {
					t.Errorf("%s (%s %q), %q, a.txt %q (%v); want the good layer in every attempt and verification", s.State, s.Rule, s.Reasons, check.Title, text, err)
				}
			}
		})
	}
}

func TestInTheSandboxWhatSetupMadeStandsAtTheSamePathEverywhere(t *testing.T) {
	t.Parallel()
	// As the scripts of a virtual environment do, what setup makes names its own path.
	r := newRig(t, map[string]string{"a.txt": "one\n", ".gitignore": "/.venv/\n", ".github/pawl.yml": `environment:
  setup: ['mkdir -p .venv/bin /opt/kit; printf "#!/bin/sh\necho $HOME\n" > .venv/bin/real; chmod +x .venv/bin/real; printf "#!$PWD/.venv/bin/real\n" > .venv/bin/tool; chmod +x .venv/bin/tool; echo kept > /opt/kit/file']
  paths: [/opt/kit]
verify: ['test "$(sh -c "$(head -n 1 .venv/bin/tool | cut -c 3-)")" = "$HOME" && grep -q kept /opt/kit/file && echo more > /opt/kit/file && grep -q more /opt/kit/file']
`})
	r.Agent("", "")
	r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"), []byte("#!/bin/sh\ncat > /dev/null\n{ $(head -n 1 .venv/bin/tool | cut -c 3-); pwd; cat /opt/kit/file; } >> a.txt\n"), 0o700))
	r.Config += "sandbox: {mode: auto}\n"
	r.Start()
	n := r.Solve("Where", "Please write down where it is.")
	s := r.Ending(n)
	text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
	if s.State != "done" || err != nil || text != "one\n/pawl/home\n/pawl/work\nkept\n" {
		t.Errorf("%s (%s %q), a.txt %q (%v)", s.State, s.Rule, s.Reasons, text, err)
	}
	if layers := r.Status().Layers; len(layers) != 1 || layers[0].Repo != testrig.Repo || layers[0].Key != r.Layer(n).Key || layers[0].Bytes == 0 {
		t.Errorf("pawl status shows %+v; want the layer %+v", layers, r.Layer(n))
	}
	if count, size := r.Metric("pawl_layers"), r.Metric("pawl_layer_bytes"); count != 1 || size == 0 {
		t.Errorf("the metrics show %v layers of %v bytes", count, size)
	}
}

func TestSecretsOfSetupAreThereInSetupOnly(t *testing.T) {
	t.Setenv("LAYERS_TEST_TOKEN", "a-secret-of-the-registry")
	for _, repo := range []string{testrig.Repo, "acme/other"} {
		r := newRig(t, prepared(`test -z "$LAYERS_TEST_TOKEN" && test "$SET" = here`, ".github/pawl.yml",
			"environment: {setup: ['echo \"token ${LAYERS_TEST_TOKEN:-none}\"; mkdir deps; echo \"${#LAYERS_TEST_TOKEN}\" > deps/length; test ! -e broken'], env: {SET: here}}\nverify: ['test -z \"$LAYERS_TEST_TOKEN\" && test \"$SET\" = here']\n"))
		r.Agent("cat > /dev/null; { cat deps/length; echo \"$SET\"; env | grep -c a-secret; } >> a.txt; true\n", "")
		r.Config += "setup: {secrets: [{env: [LAYERS_TEST_TOKEN], repositories: [" + repo + "]}]}\n"
		r.Start()
		n := r.Solve("What is there", "Please write down what is there.")
		s := r.Ending(n)
		text, err := r.World.File(t.Context(), testrig.Repo, fmt.Sprintf("pawl/issue-%d", n), "a.txt")
		want := map[bool]string{true: "one\n24\nhere\n0\n", false: "one\n0\nhere\n0\n"}[repo == testrig.Repo]
		if s.State != "done" || err != nil || text != want {
			t.Errorf("secrets for %s: %s (%s %q), a.txt %q (%v), want %q", repo, s.State, s.Rule, s.Reasons, text, err, want)
		}
		r.pushMain(map[string]string{"broken": "", "package-lock.json": "second\n"})
		n = r.Solve("Once more", "Please write down what is there once more.")
		s = r.Ending(n)
		check := r.Check(r.World.Branches(testrig.Repo)["main"], "pawl")
		if hidden := strings.Contains(check.Summary, "token [hidden: LAYERS_TEST_TOKEN]"); s.Rule != "setup_failed" || hidden != (repo == testrig.Repo) || strings.Contains(check.Summary, "a-secret") {
			t.Errorf("%s (%s), the secret is hidden: %v\n%s", s.State, s.Rule, hidden, check.Summary)
		}
	}
}

func TestTheUsualSetupIsProposedOnceAndNotRun(t *testing.T) {
	t.Parallel()
	r := newRig(t, with("true", "package-lock.json", "{}\n", "package.json", "{}\n"))
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	n, _ := r.Solved()
	line := "no setup: `npm ci` is the usual command for `package-lock.json`"
	if check := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl"); !strings.Contains(check.Summary, line) {
		t.Errorf("the check run does not say %q:\n%s", line, check.Summary)
	}
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve one more")
	r.Must(err)
	r.Await("the second attempt", func() bool { return r.Calls() == 2 })
	r.Ending(n)
	if check := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl"); strings.Contains(check.Summary, "no setup") {
		t.Errorf("it is proposed again:\n%s", check.Summary)
	}
}
