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

// The conclusions that Pawl uses. A required check passes with neutral; failure and action_required block the merge.
const (
	Success        = "success"
	Neutral        = "neutral"
	Failure        = "failure"
	ActionRequired = "action_required"
)

// Checks renders the three check runs without their commit, which the caller sets. A run that only asks a question does
// not change them.
func Checks(f View) []forge.CheckRun {
	if f.Before != nil {
		f = *f.Before
	}
	all := []forge.CheckRun{run(f), severity(f), stagnation(f)}
	for i := range all {
		all[i].Summary += render.When(
			f.Unwalled != "",
			"\n\nAgents have the same network access as this server (`"+f.Unwalled+"`).",
		)
	}
	return all
}

func ExternalID(thread, name string) string { return name + ":" + threadName(thread) }

func check(f View, name string) forge.CheckRun {
	return forge.CheckRun{Name: name, ExternalID: ExternalID(f.Thread, name), DetailsURL: f.DetailsURL}
}

// pending is a verdict before the first attempt has ended. It stays open until the run ends, and is then neutral: a
// neutral check run neither blocks a merge nor claims a result.
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
	p.sentence("The check run " + render.Code(NameRun) + " shows what happens now.")
	c.Summary = p.fit()
	return c
}

// buttons returns the actions that fit the state: at most three, GitHub's limit.
func buttons(f View) []forge.Button {
	switch f.State {
	case Running:
		return []forge.Button{button("stop")}
	case Waiting:
		return waitingButtons(f)
	case Answered, Planned:
		return nil // users continue with a comment
	case Done, Failed, ConfigError:
		return []forge.Button{button("retry")}
	default:
		return stoppedButtons(f.Rule)
	}
}

func waitingButtons(f View) []forge.Button {
	resume := button("resume")
	if slices.Contains([]policy.Rule{policy.RuleBudget, policy.RuleDailyCap, policy.RuleCap, policy.RuleProbe, policy.RuleCrowded, policy.RuleNoNode}, f.Rule) {
		resume.Description = "Check now whether work can start" // /pawl resume does not end these waits
	}
	// A wait without a known end is for a global limit, which only the operator can raise.
	ofThread := f.Rule == policy.RuleBudget || f.Rule == policy.RuleDailyCap
	if ofThread && !f.Until.IsZero() {
		return []forge.Button{resume, button("raise"), button("stop")}
	}
	return []forge.Button{resume, button("stop")}
}

// stoppedButtons returns the actions that help after a rule has stopped the run.
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

// maxTitle is the longest title that GitHub's checks page shows on one line.
const maxTitle = 120

func title(parts ...string) string { return render.Short(render.Joined(": ", parts...), maxTitle) }

var safeThread = regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+#[0-9]+$`)

// threadName returns the thread's name in markers and identifiers: "unknown" unless it has the form owner/repo#n.
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

// maxBytes bounds every text. GitHub refuses summaries and comments above 65,535.
const maxBytes = 60_000

// page collects the parts of a Markdown text. No block spans two parts, so a long text is cut between parts and never
// inside a block.
type page struct{ parts []string }

// sentence adds paragraphs of Pawl's own words. The caller must escape the names in them.
func (p *page) sentence(all ...string) {
	p.parts = append(p.parts, slices.DeleteFunc(all, func(s string) bool { return s == "" })...)
}

func (p *page) list(lines ...string) {
	if all := render.Joined("\n- ", lines...); all != "" {
		p.sentence("- " + all)
	}
}

func reasons(all []string, max int) []string { return first(all, max, "reason", render.Prose) }

// first renders the first max items, and a line that counts the others.
func first[T any](all []T, max int, what string, line func(T) string) (lines []string) {
	for _, one := range all[:min(len(all), max)] {
		lines = append(lines, line(one))
	}
	if more := len(all) - max; more > 0 {
		lines = append(lines, "and "+policy.Plural(more, "more "+what))
	}
	return lines
}

// fold adds a folded section. The title must be one escaped line without Markdown.
func (p *page) fold(title, body string) {
	if body != "" {
		p.parts = append(p.parts, "<details><summary>"+title+"</summary>\n\n"+body+"\n\n</details>")
	}
}

func (p *page) fit() string { return p.fitIn(maxBytes) }

// fitIn joins as many of the first parts as fit into max bytes.
func (p *page) fitIn(max int) string {
	if whole := strings.Join(p.parts, "\n\n") + "\n"; len(whole) <= max {
		return whole
	}
	const note = "The rest is left out because the text would be too long.\n"
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

// The states of a thread. Failed means that Pawl itself failed, whatever the attempts' outcomes. ConfigError means that
// the repository's configuration has problems, so nothing runs.
const (
	Running     State = "running"
	Waiting     State = "waiting"
	Stopped     State = "stopped"
	Done        State = "done"
	Failed      State = "failed"
	ConfigError State = "config_error"
	Answered    State = "answered"
	Planned     State = "planned" // a plan waits for /pawl go
)

// View holds the facts about one thread at one moment.
type View struct {
	Thread               string // owner/repo#n
	Number               int    // the issue's or pull request's own number
	IsPull               bool
	Title                string
	RequestedBy, Request string // the login of the user who made the last request, and its text for the agent
	State                State
	thread.Decided       // the running attempt's decision; otherwise the last decision
	Now                  time.Time
	Run                  int             // the number of the current run
	Attempts             []Attempt       // of all runs, oldest first
	Severity             policy.Severity // the verdict on the last ended attempt; its class is empty if no attempt ended
	CooldownUntil        time.Time       // when the cooldown of that attempt's backend ends
	Runaway              bool            // the backend is in cooldown until a user comments /pawl resume
	Stagnation           policy.Stagnant
	Limit                *AccountLimit
	Feedback             []thread.Request  // the newest events that Pawl judged, oldest first; Withdrawn says why Pawl did not act
	Checked              []thread.RedCheck // verdicts on failing checks of other apps
	// A URL that is empty or not a plain web address is not linked.
	PullURL, IssueURL, DetailsURL string
	AnswerURL, PostError          string // the comment with the run's last answer or plan; why it could not be posted
	Before                        *View  // if the current run only asks something: the thread's work before it; otherwise nil
	Unwalled                      string // the server setting that gives agents the server's network; empty if none does
	Branch                        string
	Base                          string  // the branch that the work began from; empty if unknown
	Pull                          int     // the pull request that Pawl opened for an issue; 0 for none
	DayUSD                        float64 // the repository's daily budget; 0 for no limit
	Head                          string  // the commit of the check runs; empty if unknown
	Watch                         Watch
}

// Attempt is one attempt. Its receipt is empty while it runs.
type Attempt struct {
	policy.Attempt
	Effort string
	// Similarity to the more similar of the two previous attempts: 0..1. SimilarKind is failure, revision or empty.
	Similarity        float64
	SimilarKind       string
	Waited, Duration  time.Duration // the wait before the attempt, and the attempt's duration
	Continues, Chosen string        // whether and why a session was continued, and how the backend was chosen
	NoAgent           bool          // the base was merged without an agent
	Proposal          policy.Proposal
	Grade             string // the attempt's reward for learning, or why it has none; empty while it runs
}

// AccountLimit is the last limit of a backend account. ResetsAt is zero if unknown.
type AccountLimit struct {
	Account, Message string
	ResetsAt         time.Time
	Consecutive      int
}

func (a Attempt) ended() bool { return a.Ending != "" || a.Outcome != "" }

func (f View) run() []Attempt {
	return slices.DeleteFunc(slices.Clone(f.Attempts), func(a Attempt) bool { return a.Run != f.Run })
}

// AsOf returns the view at another time.
func (f View) AsOf(now time.Time) View {
	f.Now = now
	if f.Before != nil {
		before := f.Before.AsOf(now)
		f.Before = &before
	}
	return f
}

// Work returns the view without a run that only asks something.
func (f View) Work() View {
	if f.Before != nil {
		return *f.Before
	}
	f.Purpose = policy.ToChange
	return f
}

// last returns the newest ended attempt of the current run for the current purpose.
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
