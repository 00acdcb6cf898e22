package checkrun

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	NameRun        = "pawl"
	NameSeverity   = "pawl/severity"
	NameStagnation = "pawl/stagnation"
)

const (
	Queued     = "queued"
	InProgress = "in_progress"
	Completed  = "completed"
)

// Pawl's conclusions. If a check is required, neutral passes; failure and action_required block.
const (
	Success        = "success"
	Neutral        = "neutral"
	Failure        = "failure"
	ActionRequired = "action_required"
)

// Checks renders the three check runs. They describe the head commit, which a question does not concern. The caller
// chooses the commit.
func Checks(f View) []forge.CheckRun {
	if f.Before != nil {
		f = *f.Before
	}
	all := []forge.CheckRun{run(f), severity(f), stagnation(f)}
	for i := range all {
		all[i].Summary += render.When(
			f.Unwalled != "",
			"\n\nAgents reach whatever this server reaches (`"+f.Unwalled+"`).",
		)
	}
	return all
}

func ExternalID(thread, name string) string { return name + ":" + threadName(thread) }

func check(f View, name string) forge.CheckRun {
	return forge.CheckRun{Name: name, ExternalID: ExternalID(f.Thread, name), DetailsURL: f.DetailsURL}
}

// pending is a verdict before the first attempt's end. It stays open during the run; then it becomes neutral, so
// that it neither blocks a merge nor claims an inspection.
func pending(c forge.CheckRun, f View, what string) forge.CheckRun {
	p := &page{}
	if f.over() {
		c.Status, c.Conclusion, c.Title = Completed, Neutral, "Not judged: no attempt of this run has ended"
		p.sentence(what + " was not judged, because no attempt of this run has ended.")
	} else {
		c.Status, c.Title = Queued, "Not known yet: no attempt of this run has ended"
		if f.State == Running {
			c.Status = InProgress
		}
		p.sentence(what + " is judged when an attempt ends.")
	}
	p.sentence("The check run " + render.Code(NameRun) + " says what happens now.")
	c.Summary = p.fit()
	return c
}

// buttons are a state's actions, at most three.
func buttons(f View) []forge.Button {
	switch f.State {
	case Running:
		return []forge.Button{button("stop")}
	case Waiting:
		return waitingButtons(f)
	case Answered, Planned:
		return nil // a comment can ask for more
	case Done, Failed, ConfigError:
		return []forge.Button{button("retry")}
	default:
		return stoppedButtons(f.Rule)
	}
}

func waitingButtons(f View) []forge.Button {
	resume := button("resume")
	if slices.Contains([]policy.Rule{policy.RuleBudget, policy.RuleDailyCap, policy.RuleCap, policy.RuleProbe, policy.RuleCrowded}, f.Rule) {
		resume.Description = "Look whether there is room now" // no user's command ends these waits
	}
	// Only the operator can raise a global limit, whose end is unknown.
	ofThread := f.Rule == policy.RuleBudget || f.Rule == policy.RuleDailyCap
	if ofThread && !f.Until.IsZero() {
		return []forge.Button{resume, button("raise"), button("stop")}
	}
	return []forge.Button{resume, button("stop")}
}

// stoppedButtons are the helpful actions after a rule has stopped the run.
func stoppedButtons(rule policy.Rule) []forge.Button {
	words := rule.Words()
	switch words.Help {
	case policy.HelpRetry:
		return []forge.Button{button("retry")}
	case policy.HelpResume:
		return []forge.Button{button("resume")}
	case policy.HelpAny:
		return []forge.Button{button("retry"), button("escalate")}
	default:
	}
	if words.Stops == "" { // an unknown rule
		return []forge.Button{button("retry"), button("escalate")}
	}
	return nil // the hint says what helps
}

func button(name string) forge.Button {
	return forge.Button{
		Label:       strings.ToUpper(name[:1]) + name[1:],
		Description: policy.CommandNamed(name).Button,
		Identifier:  name,
	}
}

// maxTitle is the length of a title that the checks page shows on one line.
const maxTitle = 120

func title(parts ...string) string { return render.Short(render.Joined(": ", parts...), maxTitle) }

var safeThread = regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+#[0-9]+$`)

// threadName is the thread in markers and identifiers; unknown for other forms than owner/repo#n.
func threadName(thread string) string {
	if len(thread) > 200 || !safeThread.MatchString(thread) {
		return "unknown"
	}
	return thread
}

func repoName(thread string) string {
	repo, _, _ := strings.Cut(threadName(thread), "#")
	return repo
}

// maxBytes limits every text of Pawl: GitHub refuses summaries and comments of more than 65,535.
const maxBytes = 60_000

// page collects the parts of a Markdown text. Each part is complete, so an overlong text is cut between parts.
type page struct{ parts []string }

// sentence adds paragraphs of Pawl's own words; names in them must be escaped.
func (p *page) sentence(all ...string) {
	p.parts = append(p.parts, slices.DeleteFunc(all, func(s string) bool { return s == "" })...)
}

func (p *page) list(lines ...string) {
	if all := render.Joined("\n- ", lines...); all != "" {
		p.sentence("- " + all)
	}
}

func reasons(all []string, max int) []string { return first(all, max, "reason", render.Prose) }

// first are the lines of the first max items, and one that counts the others.
func first[T any](all []T, max int, what string, line func(T) string) (lines []string) {
	for _, one := range all[:min(len(all), max)] {
		lines = append(lines, line(one))
	}
	if more := len(all) - max; more > 0 {
		lines = append(lines, "and "+policy.Plural(more, "more "+what))
	}
	return lines
}

// fold adds a folded section. The title must be escaped, without line breaks and Markdown.
func (p *page) fold(title, body string) {
	if body != "" {
		p.parts = append(p.parts, "<details><summary>"+title+"</summary>\n\n"+body+"\n\n</details>")
	}
}

func (p *page) fit() string { return p.fitIn(maxBytes) }

// fitIn joins the first parts, at most max bytes.
func (p *page) fitIn(max int) string {
	if whole := strings.Join(p.parts, "\n\n") + "\n"; len(whole) <= max {
		return whole
	}
	const note = "More is left out here because the text would be too long.\n"
	var b strings.Builder
	for _, part := range p.parts {
		if b.Len()+len(part)+2+len(note) > max {
			break
		}
		b.WriteString(part + "\n\n")
	}
	if b.Len()+len(note) <= max {
		b.WriteString(note)
	}
	return b.String()
}

type State string

// The states. Failed: Pawl could not do its own job, whatever the attempt's result. ConfigError: the repository's
// configuration has errors and nothing runs.
const (
	Running     State = "running"
	Waiting     State = "waiting"
	Stopped     State = "stopped"
	Done        State = "done"
	Failed      State = "failed"
	ConfigError State = "config_error"
	Answered    State = "answered"
	Planned     State = "planned" // a plan waits for a user's command
)

// View is a thread's data at one moment.
type View struct {
	Thread               string // owner/repo#n
	Number               int    // the issue's or pull request's own number
	IsPull               bool
	Title                string
	RequestedBy, Request string // RequestedBy is the login of the run's cause, Request the agent's text of it
	State                State
	thread.Decided       // the last decision, or the running attempt's
	Now                  time.Time
	// Run is the number of the current run. Attempts are all attempts of the thread, oldest first; other runs' are
	// only counted.
	Run      int
	Attempts []Attempt
	// Severity is the verdict on the last finished attempt, CooldownUntil the end of its backend's cooldown. An
	// unknown class means no verdict.
	Severity      policy.Severity
	CooldownUntil time.Time
	Runaway       bool // in cooldown until a user commands an attempt
	Stagnation    policy.Stagnant
	Limit         *AccountLimit
	// Feedback is the last judged feedback, oldest first; Withdrawn says why something had no effect.
	Feedback []thread.Request
	// Checked are the classified failing checks on the commit.
	Checked []thread.RedCheck
	// The links are omitted if they are empty or not plain web URLs.
	PullURL, IssueURL, DetailsURL string
	// Said is the URL of the run's last answer or plan, Unsaid why it could not be posted.
	Said, Unsaid string
	// Before is the state of the work before a run that only asks something; nil for other runs, or without earlier
	// work.
	Before   *View
	Unwalled string // the server's setting that lets agents reach every host; empty if they do not
	Branch   string
	Base     string  // the base branch's name; empty if unknown
	Pull     int     // Pawl's pull request for an issue; 0 for none
	DayUSD   float64 // the repository's daily budget; 0 for no limit
	Head     string  // the check runs' commit; empty if unknown
}

// Attempt is one attempt with its receipt, which is empty while it runs.
type Attempt struct {
	policy.Attempt
	Effort string
	// Similarity with the nearer of the two attempts before, 0..1, and its kind: failure, revision, or empty.
	Similarity       float64
	SimilarKind      string
	Waited, Duration time.Duration // the wait before the attempt, and how long it ran
	// Continues says whether a session was continued and why; Chosen how the backend was chosen.
	Continues, Chosen string
	NoAgent           bool // the base was merged, and no agent was asked
	Proposal          policy.Proposal
	Grade             string // the learned reward, or why there is none; empty while unknown
}

// AccountLimit is a backend account's last limit. ResetsAt is zero if unknown.
type AccountLimit struct {
	Account, Message string
	ResetsAt         time.Time
	Consecutive      int
}

func (a Attempt) ended() bool { return a.Ending != "" || a.Outcome != "" }

func (f View) run() []Attempt {
	return slices.DeleteFunc(slices.Clone(f.Attempts), func(a Attempt) bool { return a.Run != f.Run })
}

// AsOf is the view at another time.
func (f View) AsOf(now time.Time) View {
	f.Now = now
	if f.Before != nil {
		before := f.Before.AsOf(now)
		f.Before = &before
	}
	return f
}

// Work is the view of the work alone, without a run that only asks something.
func (f View) Work() View {
	if f.Before != nil {
		return *f.Before
	}
	f.Purpose = policy.ToChange
	return f
}

// last is the current run's newest finished attempt for the same purpose.
func (f View) last() (Attempt, bool) {
	for _, a := range slices.Backward(f.run()) {
		if a.ended() && a.Decision.Purpose == f.Purpose {
			return a, true
		}
	}
	return Attempt{}, false
}

func (f View) over() bool { return f.State != Running && f.State != Waiting }

func (f View) reasons() []string {
	return f.Reasons.Write(func(t time.Time) string { return render.Instant(f.Now, t) })
}
