// Package pages tests Pawl's pages in a browser: the built program works on issues of the fake GitHub, and Debian's
// chromium shows the pages. `make pictures` also takes the pictures for README and docs.
package pages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/lab/rig"
	"github.com/pawlbot/pawl/solver/thread"
)

// repo is the repository of the issues.
const repo = "acme/totals"

// patience limits every wait. It is long, so that a busy machine fails no test.
const patience = 5 * time.Minute

// site is a server with four issues. The second attempt solves one issue, one is stuck, and one waits for a usage
// limit. The agent of the fourth issue works until the test ends.
type site struct {
	*rig.Rig
	t      *testing.T
	db     *store.Store
	ctrl   string // a folder that the agent shares with the test
	url    string // the pages' URL
	cookie *http.Cookie

	stuck, solved, limited, running int
}

// testSH prints TAP. Agents add checks at its end.
const testSH = `trap 'echo "1..$n"; exit $failed' EXIT
n=0 failed=0
check() {
	n=$((n+1))
	got=$(printf '%s\n' $1 | sh total.sh)
	[ "$got" = "$2" ] && echo "ok $n - the total of ${1:-no line}" && return
	echo "not ok $n - the total of ${1:-no line}"
	echo "# it is $got, want $2"
	failed=1
}
check '100 100' 2
`

// agent behaves differently for each issue, depending on the prompt. CTRL is the site's folder.
const agent = `prompt=$(cat)
says() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
runs() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"tool_use","id":"t%s","name":"Bash","input":{"command":"%s"}}]}}\n' "$1" "$1" "$2"; }
edits() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"tool_use","id":"t%s","name":"Edit","input":{"file_path":"%s","old_string":"%s","new_string":"%s"}}]}}\n' "$1" "$1" "$2" "$3" "$4"
	printf '{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t%s","content":"updated"}]}}\n' "$1"; }
ends() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":%s,"usage":{"input_tokens":%s,"cache_read_input_tokens":%s,"output_tokens":%s}}\n' "$1" "$2" "$3" "$4" "$5"; }
case "$prompt" in
*"negative total"*)
	says 1 "I read total.sh and its test first."
	runs 2 "sh test.sh"
	if [ ! -e "$CTRL/tried" ]; then
		touch "$CTRL/tried"
		echo "check '-150' -2" >> test.sh
		sed -i 's|int(s/100)|int(s/100+0.5)|' total.sh
		edits 3 total.sh "int(s/100)" "int(s/100+0.5)"
		edits 4 test.sh "" "check '-150' -2"
		ends "Totals are rounded half up now." 0.19 21400 88000 1900
	else
		sed -i 's|int(s/100+0.5)|int(s/100+(s<0?-0.5:0.5))|' total.sh
		edits 3 total.sh "int(s/100+0.5)" "int(s/100+(s<0?-0.5:0.5))"
		echo "check '-149' -1" >> test.sh
		edits 4 test.sh "" "check '-149' -1"
		ends "The rounding goes away from zero for negative totals as well, and a test says so." 0.27 30100 121000 2600
	fi ;;
*"empty file"*)
	grep -q nothing test.sh || echo "check '' nothing" >> test.sh
	echo "# an empty list is 0 ($(wc -l < total.sh))" >> total.sh
	ends "An empty file counts as 0 now." 0.11 12000 40000 900 ;;
*"usage text"*)
	echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your session limit · resets 5pm (UTC)"}'
	exit 1 ;;
*)
	says 1 "I measure before I change anything."
	runs 2 "for n in 1 2 3; do time sh total.sh < prices.txt; done"
	n=3
	while [ $n -lt 900 ]; do says $n "line $n"; n=$((n+1)); done
	says 900 "awk reads the file once; starting it for each price is what costs."
	touch "$CTRL/ready"
	while [ ! -e "$CTRL/more" ]; do sleep 0.1; done
	runs 901 "go test ./..."
	says 902 "it is faster now"
	while [ ! -e "$CTRL/go" ]; do sleep 0.1; done
	ends "One call of awk now." 0.05 9000 20000 400 ;;
esac
`

// open starts the site and waits until its issues have the states that the tests need.
func open(t *testing.T) *site {
	t.Helper()
	dir := t.TempDir()
	s := &site{t: t, ctrl: filepath.Join(dir, "ctrl")}
	s.must(os.Mkdir(s.ctrl, 0o700))
	bin := filepath.Join(dir, "pawl")
	s.must(rig.Build(t.Context(), bin))
	var err error
	s.Rig, err = rig.New(t.Context(), bin, dir, "CTRL='"+s.ctrl+"'\n"+agent, "claude, account: main, model: opus", "none",
		"workers: 4\npolicy: {restarts: {max: 3}}\n")
	s.must(err)
	t.Cleanup(func() {
		s.touch("more")
		s.touch("go")
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	s.must(s.World.AddRepo(t.Context(), repo, map[string]string{
		"README.md":        "# totals\n",
		"total.sh":         "awk '{ s += $1 } END { print int(s/100) }'\n",
		"prices.txt":       "250\n125\n",
		"test.sh":          testSH,
		".github/pawl.yml": "verify: [sh test.sh]\nchecks: {severity: always, stagnation: always}\n",
	}))
	s.must(s.World.Install(repo))
	s.must(s.World.SetRole(repo, rig.Writer, "write"))
	_, err = s.Start(t.Context())
	s.must(err)
	s.db, err = store.Open(t.Context(), s.Database(), store.Options{Access: store.Reading})
	s.must(err)
	t.Cleanup(func() { s.db.Close() })
	s.signIn()
	return s
}

// work opens the first three issues and waits for the end of their runs.
func (s *site) work() {
	s.t.Helper()
	s.stuck = s.ask("An empty file has no total", "For an empty file there should be a total of nothing instead of 0.")
	s.solved = s.ask("Round a negative total", "A negative total such as -150 cents is -1 instead of -2.")
	s.await("the stuck issue to stop", func() bool { return s.ended(s.stuck) })
	s.await("the solved issue to be done", func() bool { return s.ended(s.solved) })
	s.limited = s.ask("The usage text is wrong", "The usage text names an option that does not exist.")
	s.await("the usage limit", func() bool { return s.ended(s.limited) })
	s.run()
}

// run opens the issue whose agent works until the test ends.
func (s *site) run() {
	s.t.Helper()
	s.running = s.ask("Totals of long lists are slow", "Ten thousand prices take half a minute.")
	s.await("the agent", func() bool { _, err := os.Stat(filepath.Join(s.ctrl, "ready")); return err == nil })
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) touch(name string) {
	s.t.Helper()
	s.must(os.WriteFile(filepath.Join(s.ctrl, name), nil, 0o600))
}

func (s *site) ask(title, body string) int {
	s.t.Helper()
	n, err := s.World.OpenIssue(repo, rig.Writer, title, body)
	s.must(err)
	_, err = s.World.Comment(repo, n, rig.Writer, "/pawl solve")
	s.must(err)
	return n
}

// ended reports whether the issue's last decision is not an attempt.
func (s *site) ended(n int) bool {
	_, state, err := thread.Load(s.t.Context(), s.db, thread.ID{Owner: "acme", Name: "totals", Number: n})
	s.must(err)
	_, running := state.Running()
	return len(state.Attempts) > 0 && !running && state.Decision != nil
}

func (s *site) await(what string, cond func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	s.must(s.Until(ctx, what, func() (bool, error) { return cond(), nil }))
}

// signIn finds the pages' address in the log and signs in as an operator.
func (s *site) signIn() {
	s.t.Helper()
	log, err := os.ReadFile(filepath.Join(s.Dir, "server.log"))
	s.must(err)
	for line := range strings.Lines(string(log)) {
		var entry struct{ Message, Pages string }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Message == "pawl serves" {
			s.url = "http://" + entry.Pages
		}
	}
	out, err := exec.CommandContext(s.t.Context(), s.Bin, "login", "--config", filepath.Join(s.Dir, "pawl.yml")).CombinedOutput()
	if err != nil || s.url == "" {
		s.t.Fatalf("pawl login: %v\n%s\n%s", err, out, log)
	}
	resp, err := http.PostForm(strings.TrimSpace(string(out)), nil) // like the page's button
	s.must(err)
	resp.Body.Close()
	if len(resp.Cookies()) == 0 {
		s.must(errors.New("the login returned no cookie"))
	}
	s.cookie = resp.Cookies()[0]
}

func (s *site) thread(n int) string { return fmt.Sprintf("/threads/%s/%d", repo, n) }
