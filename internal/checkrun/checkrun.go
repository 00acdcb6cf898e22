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

// The conclusions that Pawl uses. Where a check is required neutral passes; failure and action_required block.
const (
	Success        = "success"
	Neutral        = "neutral"
	Failure        = "failure"
	ActionRequired = "action_required"
)

// Checks renders the three check runs. They tell of the head commit, about which a question says nothing. On which commit
// they are put is for the caller to say.
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

// pending is a verdict before any attempt has ended. It stays open while the run goes on; then it becomes
// neutral, so that it neither blocks a merge nor claims what nobody looked at.
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

// buttons are the actions that fit the state, at most three.
func buttons(f View) []forge.Button {
	switch f.State {
	case Running:
		return []forge.Button{button("stop")}
	case Waiting:
		return waitingButtons(f)
	case Answered, Planned:
		return nil // more is asked for in words
	case Done, Failed, ConfigError:
		return []forge.Button{button("retry")}
	default:
		return stoppedButtons(f.Rule)
	}
}

// waitingButtons are the actions that fit a thread that waits.
func waitingButtons(f View) []forge.Button {
	resume := button("resume")
	if slices.Contains([]policy.Rule{policy.RuleBudget, policy.RuleDailyCap, policy.RuleCap, policy.RuleProbe, policy.RuleCrowded}, f.Rule) {
		resume.Description = "Look whether there is room now" // no order of a person ends these waits
	}
	// A bound above the thread, which has no end that is known, is the operator's to raise.
	ofThread := f.Rule == policy.RuleBudget || f.Rule == policy.RuleDailyCap
	if ofThread && !f.Until.IsZero() {
		return []forge.Button{resume, button("raise"), button("stop")}
	}
	return []forge.Button{resume, button("stop")}
}

// stoppedButtons are the actions that help after a rule has stopped the run.
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
	if words.Stops == "" { // a rule that is not known
		return []forge.Button{button("retry"), button("escalate")}
	}
	return nil // the hint says what helps
}

// button is the button of a command.
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

// threadName is the thread in markers and identifiers; what is no owner/repo#n becomes unknown.
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

// maxBytes is the size that no text of Pawl exceeds: GitHub refuses summaries and comments of more than 65,535.
const maxBytes = 60_000

// page collects the parts of a Markdown text. Every part is closed in itself, so
// a text that is too long is cut between parts and never inside a block.
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

// reasons are the first max reasons as escaped lines.
func reasons(all []string, max int) []string { return first(all, max, "reason", render.Prose) }

// first are the lines of the first max of all, and one that counts the others.
func first[T any](all []T, max int, what string, line func(T) string) (lines []string) {
	for _, one := range all[:min(len(all), max)] {
		lines = append(lines, line(one))
	}
	if more := len(all) - max; more > 0 {
		lines = append(lines, "and "+policy.Plural(more, "more "+what))
	}
	return lines
}

// fold adds a folded section. The title must be escaped and of one line, and no Markdown.
func (p *page) fold(title, body string) {
	if body != "" {
		p.parts = append(p.parts, "<details><summary>"+title+"</summary>\n\n"+body+"\n\n</details>")
	}
}

func (p *page) fit() string { return p.fitIn(maxBytes) }

// fitIn joins the parts that come first, at most max bytes.
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

// The states. Failed: Pawl could not do its own job, whatever became of an attempt. ConfigError: the
// repository's configuration has problems and nothing runs.
const (
	Running     State = "running"
	Waiting     State = "waiting"
	Stopped     State = "stopped"
	Done        State = "done"
	Failed      State = "failed"
	ConfigError State = "config_error"
	Answered    State = "answered"
	Planned     State = "planned" // a plan waits for a person's word
)

// View is what is known of one thread at one moment.
type View struct {
	Thread               string // owner/repo#n
	Number               int    // the issue's or pull request's own number
	IsPull               bool
	Title                string
	RequestedBy, Request string // the login of whoever caused the run, Request the text that the agent got of it
	State                State
	thread.Decided       // the last decision, or that of the attempt that runs
	Now                  time.Time
	// Run is the number of the current run. Attempts are all attempts of the
	// thread, oldest first; those of other runs are only counted.
	Run      int
	Attempts []Attempt
	// Severity is the verdict on the last attempt that ended, CooldownUntil when its
	// backend has rested. An unknown class means that nothing was judged.
	Severity      policy.Severity
	CooldownUntil time.Time
	Runaway       bool // the backend rests until a person orders an attempt
	Stagnation    policy.Stagnant
	Limit         *AccountLimit
	// Feedback was judged lately, oldest first; Withdrawn says why something was not acted on.
	Feedback []thread.Request
	// Checked is what the failing checks of others on the commit were found to be.
	Checked []thread.RedCheck
	// The links are left out where they are empty or no plain web address.
	PullURL, IssueURL, DetailsURL string
	// Said is where the last answer or plan of the run stands, Unsaid why it could not be posted.
	Said, Unsaid string
	// Before is how the work stood before a run that only asks something; nil where the run does more, or there was none.
	Before   *View
	Unwalled string // the setting of the server by which agents reach whatever it reaches; empty where they do not
	Branch   string
	Base     string  // the name of the branch that the work began from; empty where it is not known
	Pull     int     // the number of the pull request that Pawl opened for an issue; 0 for none
	DayUSD   float64 // what a day may cost in the repository; 0 for no bound
	Head     string  // the commit that the check runs are put on; empty where it is not known
}

// Attempt is one attempt with its receipt, which is empty while it runs.
type Attempt struct {
	policy.Attempt
	Effort string
	// Similarity with the nearer of the two attempts before, 0..1, and of what: failure, revision, or empty.
	Similarity       float64
	SimilarKind      string
	Waited, Duration time.Duration // the wait before the attempt, and how long it ran
	// Continues says whether a session was continued and why; Chosen how the backend was chosen.
	Continues, Chosen string
	NoAgent           bool // the base was merged, and no agent was asked
	Proposal          policy.Proposal
	Grade             string // the reward that is learned from, or why there is none; empty while unknown
}

// AccountLimit is the last limit of a backend account. ResetsAt is zero when nobody said.
type AccountLimit struct {
	Account, Message string
	ResetsAt         time.Time
	Consecutive      int
}

func (a Attempt) ended() bool { return a.Ending != "" || a.Outcome != "" }

func (f View) run() []Attempt {
	return slices.DeleteFunc(slices.Clone(f.Attempts), func(a Attempt) bool { return a.Run != f.Run })
}

// AsOf are the facts told as of a time.
func (f View) AsOf(now time.Time) View {
	f.Now = now
	if f.Before != nil {
		before := f.Before.AsOf(now)
		f.Before = &before
	}
	return f
}

// Work are the facts of the work alone, without a run that only asks something.
func (f View) Work() View {
	if f.Before != nil {
		return *f.Before
	}
	f.Purpose = policy.ToChange
	return f
}

// last returns the newest attempt of the current run that has ended, of those for the same purpose.
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
