package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// patches are the successful updates of a check run, oldest first.
func (r *rig) patches(id int64) (all []fakegithub.Request) {
	for _, q := range r.world.Requests() {
		if q.Method == http.MethodPatch && q.Status == http.StatusOK && strings.HasSuffix(q.Path, fmt.Sprint("/check-runs/", id)) {
			all = append(all, q)
		}
	}
	return all
}

// Each write of an installation waits for its second, here for several. What
// people ask for meanwhile is shown by the one that waits, and the conclusion
// after it is shown as well.
func TestChangesWhileACheckRunsUpdateWaitsAreOneUpdate(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(`cat > "$CTRL/prompt"
[ -e "$CTRL/first" ] && while ! [ -e "$CTRL/go" ]; do sleep 0.1; done
touch "$CTRL/first"
echo "line $(wc -l < "$CTRL/calls")" >> a.txt
echo 'a.txt has one more line now'
`, "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	var run fakegithub.CheckRun
	r.await("the first run to be shown as over", func() bool {
		if pulls := r.world.Pulls(rigRepo); len(pulls) == 1 {
			run = r.check(pulls[0].Pull.HeadSHA, "pawl")
		}
		return run.Conclusion == "success"
	})
	r.over(threadName(n))
	r.await("nothing to be left to write", func() bool { s := r.stats(); return s.Queued+s.Running == 0 })

	r.stop(syscall.SIGTERM)
	path := r.file()
	text, err := os.ReadFile(path)
	r.must(err)
	r.must(os.WriteFile(path, []byte(strings.Replace(string(text), "write_spacing: 0s", "write_spacing: 3s", 1)), 0o600))
	r.startWith(path)
	before := len(r.patches(run.ID))
	const changes = 5
	for i := range changes {
		_, err := r.world.Comment(rigRepo, n, writer, fmt.Sprint("/pawl retry change ", i+1))
		r.must(err)
		if i == 0 {
			// The sign that it was heard is a write, after which the update waits.
			r.await("the acknowledgement", func() bool {
				c := r.world.Comments(rigRepo, n)
				return len(c[len(c)-1].Reactions) > 0
			})
		}
	}
	r.await("the second attempt", func() bool { return r.calls() == 2 })
	// The agent waits for no update; the updates wait for what was written before.
	var sent []fakegithub.Request
	r.await("an update", func() bool { sent = r.patches(run.ID)[before:]; return len(sent) > 0 })
	// On a slow machine a change may come after the update; internal/forge counts exactly.
	if len(sent) > 2 {
		t.Fatalf("%d updates for %d changes, want one or two: %+v", len(sent), changes, sent)
	}
	later := slices.ContainsFunc([]int{2, 3, 4, 5}, func(n int) bool { return strings.Contains(fmt.Sprint(sent), fmt.Sprint("change ", n)) })
	if !later {
		t.Errorf("what was sent tells of the first change only: %+v", sent)
	}
	r.must(os.WriteFile(filepath.Join(r.ctrl(), "go"), nil, 0o600))
	r.over(threadName(n))
	r.await("the conclusion", func() bool {
		head := r.world.Pulls(rigRepo)[0].Pull.HeadSHA
		return r.check(head, "pawl").Conclusion == "success" && r.check(run.SHA, "pawl").Status == "completed"
	})
}
