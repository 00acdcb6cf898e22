package web

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// run holds one run's items, newest first. N is 0 for items before the first run.
type run struct {
	N     int
	Items []item
}

// item is one event. The template cleans and cuts foreign texts.
type item struct {
	At      time.Time
	Class   string
	What    string // a few words
	By      string // empty for Pawl
	Words   string // the user's words
	Reasons []string
	Attempt *attempted
	seq     int64
}

func (it item) Title() string {
	by := render.Line(it.By, maxName)
	if strings.HasPrefix(it.What, "’s ") {
		return by + it.What
	}
	return render.Joined(" ", by, it.What)
}

// attempted is an attempt on its thread's page.
type attempted struct {
	checkrun.Attempt
	Diff     policy.Folder // the branch's diff after the attempt, all folders
	Verified word
}

// word is a short text with its CSS class.
type word struct{ Text, Class string }

// timeline returns a thread's history by run, newest first, and the number of items omitted.
func timeline(events []thread.Event, s thread.State, f checkrun.View) (runs []run, earlier int) {
	all := slices.Concat(remarks(s), decisions(events, f), attempts(events, f))
	slices.SortFunc(all, func(a, b item) int { return cmp.Compare(b.seq, a.seq) })
	begun := runsBegan(events)
	earlier = max(0, len(all)-maxItems)
	for _, it := range all[:len(all)-earlier] {
		n, _ := slices.BinarySearch(begun, it.seq+1) // number of runs begun before the item
		if last := len(runs) - 1; last < 0 || runs[last].N != n {
			runs = append(runs, run{N: n})
		}
		last := &runs[len(runs)-1]
		last.Items = append(last.Items, it)
	}
	return runs, earlier
}

func runsBegan(events []thread.Event) (seqs []int64) {
	var s thread.State
	for i, e := range events {
		before := s.Run
		if s.Apply(events[i:i+1]) != nil {
			return seqs
		}
		if s.Run > before {
			seqs = append(seqs, e.Seq)
		}
	}
	return seqs
}

// remarks returns the remarks of users and machines with their effect.
func remarks(s thread.State) (all []item) {
	add := func(f thread.Feedback, class, what string) {
		if f.Own {
			return
		}
		all = append(all, item{
			At:      f.At,
			seq:     f.Seq,
			Class:   class,
			What:    what,
			By:      f.By.Login,
			Words:   cmp.Or(f.Raw, f.Text),
			Reasons: shortened([]string{f.Reason}, 1),
		})
	}
	for _, r := range s.Feedback {
		what := "asked by " + render.Spaced(render.Line(string(r.Source), maxName))
		if r.Command != "" {
			what = "asked to " + render.Line(r.Command, maxName)
		}
		if r.Withdrawn != "" {
			add(r.Feedback, "dim", what+", which does not count: "+render.Line(r.Withdrawn, maxReason))
			continue
		}
		add(r.Feedback, "asked", what)
	}
	for _, c := range s.Controls {
		add(c, "stopped", "asked to "+render.Line(c.Command, maxName))
	}
	for _, f := range s.Ignored {
		add(f, "dim", "’s "+render.Spaced(render.Line(string(f.Source), maxName))+", not acted on")
	}
	return all
}

// decisions returns decisions that began no attempt, changes of the thread, and opened pull requests.
func decisions(events []thread.Event, f checkrun.View) (all []item) {
	for _, e := range events {
		switch e.Kind {
		case thread.KindDecision:
			var d thread.Decided
			if !read(e, &d) {
				continue
			}
			class := map[policy.Action]string{
				policy.DoWait: "waiting",
				policy.DoStop: "stopped",
				policy.DoDone: "done",
				policy.DoAsk:  "waiting",
			}[d.Action]
			what := string(d.Action)
			if string(d.Rule) != what {
				what += ", " + string(d.Rule)
			}
			it := item{
				At:      e.At,
				seq:     e.Seq,
				Class:   cmp.Or(class, "other"),
				What:    "decided: " + render.Spaced(render.Line(what, maxName)),
				Reasons: shortened(d.Reasons.Write(func(t time.Time) string { return render.Date(t) }), maxReasons),
			}
			if d.Hint != "" {
				it.Reasons = append(it.Reasons, render.Line(d.Hint, maxReason))
			}
			all = append(all, it)
		case thread.KindThread:
			var c thread.Change
			if !read(e, &c) || c.What == "edited" {
				continue
			}
			// The attempt shows its own push.
			pushed := func(a checkrun.Attempt) bool { return c.What == "head_moved" && a.Commit == c.Detail }
			if !slices.ContainsFunc(f.Attempts, pushed) {
				all = append(all, item{
					At:    e.At,
					seq:   e.Seq,
					Class: "dim",
					What:  render.Spaced(render.Line(c.What, maxName)) + " " + render.Line(c.Detail, maxName),
					By:    c.By,
				})
			}
		case thread.KindActDone:
			var a thread.Act
			if read(e, &a) && a.Key == thread.ActPull {
				all = append(all, item{At: e.At, seq: e.Seq, Class: "done", What: fmt.Sprintf("pull request #%d opened", a.ID)})
			}
		}
	}
	return all
}

// attempts returns a thread's attempts. After a handover, an attempt is listed at its last start.
func attempts(events []thread.Event, f checkrun.View) (all []item) {
	began := map[int]thread.Event{}
	for _, e := range events {
		var a thread.Started
		if e.Kind == thread.KindAttemptStarted && read(e, &a) {
			began[a.N] = e
		}
	}
	for _, v := range f.Attempts {
		w := &attempted{Attempt: v}
		for _, d := range v.Folders {
			w.Diff.Files, w.Diff.Added, w.Diff.Removed = w.Diff.Files+d.Files, w.Diff.Added+d.Added, w.Diff.Removed+d.Removed
		}
		if len(v.Verify) > 0 {
			w.Verified = word{v.VerifiedWords(f.Base), verifiedClass(v.Verification())}
		}
		all = append(all, item{At: v.StartedAt, seq: began[v.N].Seq, Class: endingClass(v), Attempt: w})
	}
	return all
}

func verifiedClass(v policy.Verification) string {
	switch {
	case v.Verifies():
		return "done"
	case v == policy.Failed:
		return "failed"
	}
	return "waiting"
}

func read[T any](e thread.Event, into *T) bool { return json.Unmarshal(e.Data, into) == nil }

// lasted describes how long an attempt took, or has run so far.
func lasted(a checkrun.Attempt, now time.Time) string {
	if a.Ending == "" && a.Outcome == "" {
		return "runs for " + render.Span(now.Sub(a.StartedAt))
	}
	return "took " + render.Dash(a.Duration)
}

func names(all []string, most int) string {
	var out []string
	for _, s := range all[:min(len(all), most)] {
		out = append(out, render.Line(s, maxName))
	}
	if n := len(all) - most; n > 0 {
		out = append(out, fmt.Sprintf("and %s more", number(n)))
	}
	return strings.Join(out, ", ")
}
