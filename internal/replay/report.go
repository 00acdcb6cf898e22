package replay

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

type Report struct {
	Attempts         []replayAttempt `json:"attempts"`
	RecordedAttempts int             `json:"recorded_attempts"`
	// StoppedAfter is the attempt after which policy would have stopped for good; null for none.
	StoppedAfter    *int        `json:"stopped_after"`
	Rule            policy.Rule `json:"rule"` // rule of the last decision
	AvoidedAttempts int         `json:"avoided_attempts"`
	// AvoidedSeconds is the recorded time from each stop to the next attempt that policy would have started, else to
	// the recording's end.
	AvoidedSeconds int64 `json:"avoided_seconds"`
	// UsageLimitAttempts hit a limit; UsageLimitMentions only quoted one.
	UsageLimitAttempts int      `json:"usage_limit_attempts"`
	UsageLimitMentions int      `json:"usage_limit_mentions"`
	Notes              []string `json:"notes,omitempty"`

	last policy.Action
}

type replayAttempt struct {
	N        int            `json:"n"`
	At       *time.Time     `json:"at"` // start; null if unknown
	EndedAt  *time.Time     `json:"ended_at"`
	Outcome  policy.Outcome `json:"outcome"`
	Progress bool           `json:"progress"`
	Decision policy.Action  `json:"decision"`
	Rule     policy.Rule    `json:"rule"`
	Reasons  []string       `json:"reasons"`
	Until    *time.Time     `json:"until,omitempty"`
	Avoided  bool           `json:"avoided"`
}

func reportReplay(out []decided, rec *recording) Report {
	r := Report{Attempts: []replayAttempt{}, RecordedAttempts: len(out), UsageLimitMentions: rec.mentions, Notes: rec.notes}
	kept, held := 0, false
	var since time.Time
	for i, d := range out {
		r.Attempts = append(r.Attempts, d.shown(kept))
		r.UsageLimitMentions += d.Mentions
		if d.Ending == policy.UsageLimit {
			r.UsageLimitAttempts++
		}
		r.Rule, r.last = d.Decision.Rule, d.Decision.Action
		if !d.Avoided {
			kept, held, since = d.N, false, d.Ended
			continue
		}
		held = true
		r.AvoidedAttempts++
		if since.IsZero() {
			since = d.Started
		}
		next := d.Ended
		if i+1 < len(out) && !out[i+1].Untimed {
			next = out[i+1].Started
		}
		if !d.Untimed {
			r.AvoidedSeconds += int64(next.Sub(since).Round(time.Second) / time.Second)
		}
		since = next
	}
	if len(out) > 0 && r.stopped(held) {
		r.StoppedAfter = &kept
	}
	return r
}

// stopped reports whether policy ended the work; held means that a wait prevented an attempt.
func (r Report) stopped(held bool) bool {
	switch r.last {
	case policy.DoStop, policy.DoAsk:
		return true
	case policy.DoWait:
		return held
	default:
		return false
	}
}

func (d decided) shown(kept int) replayAttempt {
	a := replayAttempt{
		N:        d.N,
		Outcome:  d.Outcome,
		Progress: d.Progress(),
		Decision: d.Decision.Action,
		Rule:     d.Decision.Rule,
		Avoided:  d.Avoided,
	}
	if !d.Untimed {
		a.At, a.EndedAt = &d.Started, &d.Ended
		if !d.Decision.Until.IsZero() {
			a.Until = &d.Decision.Until
		}
	}
	if d.Avoided {
		a.Reasons = append(a.Reasons, fmt.Sprintf("not started: policy decided %s after attempt %d", d.Decision.Action, kept))
	}
	a.Reasons = append(append(a.Reasons, d.Decision.Reasons.Texts()...), d.Notes...)
	if a.Reasons == nil {
		a.Reasons = []string{}
	}
	return a
}

// Print writes the report as text. It ignores write errors.
func (r Report) Print(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprint(t, "ATTEMPT\tAT\tOUTCOME\tPROGRESS\tDECISION\tRULE\tWHY\n")
	for i := 0; i < len(r.Attempts); {
		n := r.alike(i)
		r.row(t, i, n)
		i += n
	}
	t.Flush()
	for _, n := range r.Notes {
		fmt.Fprintln(w, render.Line(n, maxCell))
	}
	fmt.Fprintln(w, r.summary())
}

// alike counts the attempts from i on that were avoided in the same way; they share a row.
func (r Report) alike(i int) int {
	n := 1
	for i+n < len(r.Attempts) && r.Attempts[i].avoidedAs(r.Attempts[i+n]) {
		n++
	}
	return n
}

func (a replayAttempt) avoidedAs(b replayAttempt) bool {
	if !a.Avoided || !b.Avoided {
		return false
	}
	return a.Outcome == b.Outcome && a.Progress == b.Progress && a.Rule == b.Rule
}

func (r Report) row(w io.Writer, i, n int) {
	a := r.Attempts[i]
	name, at, progress, decision := fmt.Sprint(a.N), "", "no", string(a.Decision)
	if n > 1 {
		name = fmt.Sprintf("%d–%d", a.N, r.Attempts[i+n-1].N)
	}
	if a.At != nil {
		at = a.At.UTC().Format("2006-01-02 15:04:05")
	}
	if a.Progress {
		progress = "yes"
	}
	if a.Avoided {
		decision = "(avoided)"
	}
	fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", name, at, render.Line(string(a.Outcome), 20), progress, decision, render.Label(a.Rule), render.Line(strings.Join(a.Reasons, "; "), maxCell))
}

func (r Report) summary() string {
	limits := fmt.Sprintf("%s ended in a usage limit; texts that only quoted one: %d.", policy.Plural(r.UsageLimitAttempts, "attempt"), r.UsageLimitMentions)
	saved := fmt.Sprintf("%d of %s", r.AvoidedAttempts, policy.Plural(r.RecordedAttempts, "attempt"))
	if r.AvoidedSeconds > 0 { // else the recording has no times
		saved += fmt.Sprintf(" and %s", time.Duration(r.AvoidedSeconds)*time.Second)
	}
	saved += " saved"
	switch {
	case r.RecordedAttempts == 0:
		return "The recording has no attempts. " + limits
	case r.StoppedAfter != nil && *r.StoppedAfter == 0:
		return fmt.Sprintf("Policy would not have started (%s): %s. %s", render.Label(r.Rule), saved, limits)
	case r.StoppedAfter != nil:
		return fmt.Sprintf("Policy would have stopped after attempt %d (%s): %s. %s", *r.StoppedAfter, render.Label(r.Rule), saved, limits)
	case r.last == policy.DoDone:
		return fmt.Sprintf("Policy would not have stopped the work; it would have been done (%s): %s. %s", render.Label(r.Rule), saved, limits)
	}
	return fmt.Sprintf("Policy would not have stopped; after the last attempt: %s by %s. %s. %s", r.last, render.Label(r.Rule), saved, limits)
}

const maxCell = 200

func Streams() []string { return append(config.CLIs(), config.Plain) }

// Files plays recordings back under a server's policy. cli is their format, one of Streams; empty detects it.
func Files(cfg config.Server, cli string, files []string, open Opener) (Report, error) {
	rec, err := readRecordings(files, cli, open, cfg.Policy.Severity)
	if err != nil {
		return Report{}, err
	}
	out, err := playBack(rec.entries, cfg)
	if err != nil {
		return Report{}, err
	}
	return reportReplay(out, rec), nil
}
