package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// fromBay is the path from the HOME of a setup or verification to the test's folder ctrl.
const fromBay = `"$HOME/../../../../../../ctrl"`

// prepared returns a repository with a verify command and a setup. The setup counts its runs in ctrl/setups and fills the
// ignored folder deps and HOME.
func prepared(verify string, more ...string) map[string]string {
	files := map[string]string{"a.txt": "one\n", ".gitignore": "deps/\n*.tmp\n", "setup.sh": "echo x >> " + fromBay + "/setups\nmkdir -p deps/lib\ncat package-lock.json > deps/lib/dep\necho warm > \"$HOME/cache\"\necho one > note.tmp\n",
		"package-lock.json": "first\n", ".github/pawl.yml": "environment: {setup: [sh setup.sh]}\nverify: [" + fmt.Sprintf("%q", verify) + "]\n"}
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
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
		if i == 1 { // the first two run concurrently, the third later
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
			t.Errorf("issue %d: a.txt is %q (%v), layer %+v; want the setup's files, and one layer of %s for all", n, text, err, l, base)
		}
	}
	if got := r.Left("setups"); got != "x\n" {
		t.Errorf("setups: %q, want one", got)
	}
}

func TestFailedSetupCostsNoAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t, prepared("true", "setup.sh", "echo x >> "+fromBay+"/setups; echo the registry says no; test -e "+fromBay+"/mended"))
	r.Agent(testrig.PlainAgent, "")
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
		t.Fatalf("%s (%s), setups %q, %d calls; want one failure for all threads", s.State, s.Rule, r.Left("setups"), r.Calls())
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
			t.Errorf("repaired %v: %s (%s %q), %d calls", mend, s.State, s.Rule, s.Reasons, r.Calls())
		}
	}
	r.Settle()
	if got := r.Left("setups"); got != "x\nx\nx\n" {
		t.Errorf("setups: %q, want three", got)
	}
}

func TestSetupResultHasTheSamePathEverywhere(t *testing.T) {
	t.Parallel()
	// Like scripts of a virtual environment, the setup's files contain their own path.
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

func TestUsualSetupIsOnlyProposed(t *testing.T) {
	t.Parallel()
	files := with("true")
	files["package-lock.json"], files["package.json"] = "{}\n", "{}\n"
	r := newRig(t, files)
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
		t.Errorf("the setup is proposed again:\n%s", check.Summary)
	}
}
