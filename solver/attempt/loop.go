package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/internal/testreport"
	"github.com/pawlbot/pawl/policy"
)

// loopMonitor detects loops from a running agent's stream, and from the files that the stream names.
type loopMonitor struct {
	limits  policy.SeverityLimits
	circles *policy.Circles
	files   sampler
	// trajectory counts calls; verify lists the verify commands.
	trajectory policy.Trajectory
	verify     []string
	hollow     int             // consecutive broken answers without text or calls
	untested   map[string]bool // files edited since the last test run
	// unrestored says why withheld paths could not be restored.
	unrestored error
}

func newLoopMonitor(dir string, e config.Effective, began time.Time) (*loopMonitor, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("watch the checkout: %w", err)
	}
	return &loopMonitor{
		limits: e.Policy.Severity, verify: e.Verify, circles: policy.NewCircles(),
		files: sampler{root: root, began: began, known: map[string]look{}, ran: map[string]bool{}},
	}, nil
}

// LoopCut ends an attempt that loops.
type LoopCut struct{ Verdict policy.Severity }

func (c LoopCut) Error() string {
	return "cut off as a " + string(c.Verdict.Class) + " edit loop: " + strings.Join(c.Verdict.Reasons, "; ")
}

// call counts one call and ends the attempt after a severe loop.
func (l *loopMonitor) call(d agent.Call, end context.CancelCauseFunc) {
	if d.Failed {
		l.trajectory.Errors++
	}
	tested := len(d.Edits) == 0 && l.tests(d.Authored)
	d.Edits = l.files.complete(d)
	l.follow(tested, d.Edits)
	d.Count(l.circles)
	e := l.circles.Edits()
	if v, certain := l.limits.CutOff(e); certain && len(d.Edits) > 0 {
		end(LoopCut{v})
	}
	if e.SameCalls >= policy.MaxCalls {
		end(cut{ending: policy.SelfLoop, why: e.Repetition()})
	}
}

// follow counts test runs, and the files edited since the last one. Edits by the test command itself do not count.
func (l *loopMonitor) follow(tested bool, edits []policy.Edit) {
	if tested {
		l.trajectory.TestRuns++
		l.untested = map[string]bool{}
	} else if l.trajectory.TestRuns > 0 {
		for _, e := range edits {
			l.untested[e.Path] = true
		}
	}
	l.trajectory.FilesAfterTests = len(l.untested)
}

// session reads edits from the CLI's session file if stream and files did not show them. It ignores read errors.
func (l *loopMonitor) session(a agent.Adapter, home, dir, id string) {
	seen := l.circles.Edits()
	if !seen.Blind() {
		return
	}
	recorded := policy.NewCircles()
	err := a.SessionCalls(home, id, dir, func(d agent.Call) { d.Count(recorded) })
	e := recorded.Edits()
	if err != nil || e.Seen == 0 || e.Blind() {
		return
	}
	if 2*e.Operations >= seen.Operations {
		l.circles = recorded
	}
}

// Limits of remembered files, and of checked words per command.
const (
	maxSampledFiles = 20_000
	maxNamed        = 32
)

// sampler reads files while an agent works. It opens only changed regular files and follows no link out of the
// checkout.
type sampler struct {
	root  *os.Root
	began time.Time
	known map[string]look
	ran   map[string]bool // files whose edit was counted for a command
}

// look holds a file's state; the zero value means a missing file.
type look struct {
	at    time.Time
	size  int64
	state uint64 // content hash without white space
}

func (l look) missing() bool { return l == look{} }

// complete adds file states to a call's edits. For a command it returns edits of the changed files that the command
// names.
func (s *sampler) complete(d agent.Call) []policy.Edit {
	if len(d.Edits) == 0 {
		return s.shell(d.Authored)
	}
	edits := make([]policy.Edit, 0, len(d.Edits))
	for _, e := range d.Edits {
		seen, ok := s.sample(e.Path)
		switch {
		case !ok && s.ran[e.Path]: // already counted for a command
			s.ran[e.Path] = false
			continue
		case !ok:
		case e.Key == 0:
			e = seen
		default:
			e.State = seen.State
		}
		edits = append(edits, e)
	}
	return edits
}

// sample reads a file that an event reports as changed. It returns false for files that are unchanged, unreadable or
// newly empty: a shell truncates a file before it writes.
func (s *sampler) sample(name string) (policy.Edit, bool) {
	now, err := s.look(name)
	before, known := s.known[name]
	switch {
	case err != nil, known && now == before, emptied(before, now), !s.remember(name, now):
		return policy.Edit{}, false
	case now.missing():
		s.ran[name] = false
		return edit.File(name, ""), known
	}
	text, err := testreport.ReadRegular(s.root, name)
	e := edit.File(name, string(text))
	now.state = e.State
	s.known[name] = now
	return e, err == nil
}

func emptied(before, now look) bool {
	if now.missing() {
		return false
	}
	return now.size == 0 && before.size > 0
}

func (s *sampler) remember(name string, l look) bool {
	if _, known := s.known[name]; !known && len(s.known) >= maxSampledFiles {
		return false
	}
	s.known[name] = l
	return true
}

func (s *sampler) look(name string) (look, error) {
	info, err := s.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return look{}, nil
	case err != nil:
		return look{}, err
	case !info.Mode().IsRegular(), info.Size() > testreport.MaxRead:
		return look{}, testreport.ErrUnread
	}
	l := s.known[name]
	l.at, l.size = info.ModTime(), info.Size()
	return l, nil
}

// shell returns edits of files that a command names and that changed since the last look. White space alone does not
// count.
func (s *sampler) shell(command string) []policy.Edit {
	var edits []policy.Edit
	for _, name := range s.named(command) {
		now, err := s.look(name)
		before, known := s.known[name]
		if err != nil || now == before {
			continue
		}
		if !known && !now.at.After(s.began) {
			s.remember(name, now)
			continue
		}
		e, ok := s.sample(name)
		if ok && e.State != before.state {
			s.ran[name] = true
			edits = append(edits, e)
		}
	}
	return edits
}

// apart lists the characters that separate words in any layer of quoting.
const apart = " \t\r\n'\"`;|&<>()[]{}=,:$\\"

// named returns a command's words that may be files of the checkout. It skips logs and temporary files, which commands
// rewrite without editing.
func (s *sampler) named(command string) []string {
	command = strings.ReplaceAll(command, `\n`, " ")
	var names []string
	for _, word := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(apart, r) }) {
		word = strings.TrimPrefix(word, s.root.Name()+"/")
		if begins(word, "-", "/") {
			continue
		}
		word = path.Clean(word)
		switch path.Ext(word) {
		case ".log", ".out", ".tmp":
			continue
		}
		if word == "." || begins(word, "../", ".git/") {
			continue
		}
		if slices.Contains(names, word) {
			continue
		}
		names = append(names, word)
		if len(names) == maxNamed {
			break
		}
	}
	return names
}

func begins(word string, with ...string) bool {
	return slices.ContainsFunc(with, func(w string) bool { return strings.HasPrefix(word, w) })
}

func (l *loopMonitor) event(e agent.Event, end context.CancelCauseFunc) {
	switch e.Kind {
	case agent.Notice:
		if e.Text != "" {
			l.trajectory.Retries++
		}
	case agent.Message, agent.ToolCall:
		l.hollow = 0
	case agent.StepEnded:
		if e.Ending == policy.Disconnected {
			l.hollow++
		}
	}
	if l.hollow == maxHollow {
		why := fmt.Sprintf("the provider's last %d answers broke off without content", maxHollow)
		end(cut{ending: policy.Disconnected, why: why})
	}
}

// maxHollow is the number of broken answers in a row that ends an attempt. OpenCode retries forever if its provider
// sends an error page or an empty stream. The gateway's limit is the same.
const maxHollow = 5

// tests reports whether a call runs tests: the repository's, or a common test runner.
func (l *loopMonitor) tests(wrote string) bool {
	own := func(c string) bool { return c != "" && strings.Contains(wrote, c) }
	if slices.ContainsFunc(l.verify, own) {
		return true
	}
	return policy.RunsTests(wrote)
}
