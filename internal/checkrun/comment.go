package checkrun

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// commentRows is how many attempts a comment shows. Our choice.
const commentRows = 5

// StatusMarker returns a status comment's first line, by which Pawl finds the comment.
func StatusMarker(thread string) string { return "<!-- pawl:status " + threadName(thread) + " -->" }

// Damaged returns the comment about an event that Pawl cannot read from its database, and the marker that identifies
// that comment.
func Damaged(thread string, event int64) (text, mark string) {
	mark = fmt.Sprintf("<!-- pawl:damaged %s %d -->", threadName(thread), event)
	return mark + fmt.Sprintf("\n\n**Stopped: event %d of this thread cannot be read from Pawl's database.** Other threads are not affected. "+
		"The operator should read the server's log and restore that row from a backup. Then comment `/pawl retry`.\n", event), mark
}

func Comment(f View) string {
	return status(f, StatusMarker(f.Thread)+"\n\n", "")
}

// Answer renders the reply to a command: a report, a confirmation, or why nothing was done. slug is the App's name on
// GitHub. backends are the names that /pawl use accepts; excluded means that the repository's configuration excludes the
// requested one. The caller adds the marker.
func Answer(f View, q thread.Feedback, slug string, backends []string, excluded bool) string {
	login := render.Code(render.Label(q.By.Login))
	switch q.Command {
	case "status":
		return status(f, "", "As of "+render.Date(f.Now)+".")
	case "why":
		return why(f)
	case "use":
		if slices.Contains(backends, q.Word) {
			return "The next attempt on this thread uses " + render.Code(q.Word) + ". `/pawl retry` starts one.\n"
		}
		return noBackend(q.Word, backends, excluded)
	case "pause", "unpause":
		return paused(repoName(f.Thread), q.Command == "pause", q.Word)
	case feedback.Maintainer:
		return login + " may write to this repository, but does not maintain it. Pausing and unpausing need the maintain or admin permission. Nothing was done.\n"
	case feedback.Refused:
		return login + " may not write to this repository. Pawl accepts commands only from users with write access. Nothing was done.\n"
	case "steer":
		return steer(q.Word)
	case feedback.NotACommand, feedback.LooksLikeACommand:
		return "This is not a command. Nothing was done. A command must begin a line of a new comment, outside quotes and code: `/pawl solve`, or " +
			render.Code("@"+render.Label(slug)) + " with the task.\n"
	case "update":
		if q.Word == "" {
			return "This thread has no open pull request, so there is no base to merge. Nothing was done.\n"
		}
		return "There is nothing to merge: the branch already contains " +
			render.Code(q.Word) + ", or shares no history with it.\n"
	case "watch":
		return "Not watched: " + render.Prose(cmp.Or(q.Word, policy.Watchable{}.Refusal())) + ". Nothing was done.\n"
	}
	if answer, known := fixed[q.Command]; known {
		return answer
	}
	return help(slug, q.Word)
}

// fixed holds the answers that are the same on every thread.
var fixed = map[string]string{
	"stop":     "No run was active. Pawl begins no work on this thread until a user asks for it (`/pawl resume`, `/pawl solve`).\n",
	"escalate": "No backend here has an escalated effort, so the next attempt uses the usual effort.\n",
	"unwatch":  "This thread's pull request is not watched. Nothing was done.\n",
	"go":       "There is no plan to carry out. Nothing was done. `/pawl plan` asks for a plan; `/pawl solve` works without one.\n",
	"ask":      "`/pawl ask` needs a question on the same line. Nothing was done.\n",
}

// steer answers a text that the running agent did not receive; see policy.Steer.
func steer(word string) string {
	const kept = " The text is feedback for the next attempt.\n"
	switch policy.Steer(word) {
	case policy.SteerFull:
		return fmt.Sprintf("Users steered this attempt %d times, which is the limit, so the agent did not receive the last text.", policy.MaxSteers) + kept
	case policy.SteerMissed:
		return "The agent ended before it received the text of `/pawl steer`." + kept
	default:
		return "`/pawl steer` needs a text. Nothing was done.\n"
	}
}

func status(f View, marker, dated string) string {
	p := &page{}
	p.addLead(f, marker)
	p.list(evidence(f)...)
	if a, ok := f.last(); ok && a.LastMessage() != "" && f.AnswerURL == "" {
		p.fold("What the agent did", render.Quote(a.LastMessage(), maxMessage))
	}
	p.fold("Attempts", table(f, commentRows))
	p.fold("Request", requestText(f))
	p.fold("Blocked network requests", refused(f))
	p.fold("Recoveries", rungs(f.run()))
	p.fold("Edit loop and stagnation", verdictLines(f))
	p.sentence(dated)
	return p.fit()
}

func bold(f View) string { return "**" + render.Prose(Headline(f)) + "**" }

// why answers /pawl why: the verdicts on the last events, newest first, and the current decision.
func why(f View) string {
	p := &page{}
	if len(f.Feedback) == 0 {
		p.sentence("Pawl has not judged any event of this thread yet.")
	}
	for i := len(f.Feedback) - 1; i >= max(0, len(f.Feedback)-whyRows); i-- {
		p.sentence(judged(f.Feedback[i], f))
	}
	if more := len(f.Feedback) - whyRows; more > 0 {
		p.sentence("…and " + policy.Plural(more, "earlier event"))
	}
	p.sentence("Now: " + bold(f))
	p.list(append(reasons(f.reasons(), 10), render.When(
		f.Rule != "",
		"rule: "+render.Code(string(f.Rule)),
	))...)
	p.sentence(outlook(f))
	p.sentence(render.Joined(" · ", links(f)...))
	return p.fit()
}

// whyRows is how many events an answer explains.
const whyRows = 10

func judged(e thread.Request, f View) string {
	what := "**Not acted on**"
	if e.Withdrawn == "" {
		what = "**Acted on**"
	}
	because := cmp.Or(render.Prose(cmp.Or(e.Withdrawn, e.Reason)), "no reason was recorded")
	s := fmt.Sprintf(
		"%s: %s by %s at %s, because %s.",
		what,
		words(e.Source),
		render.Code(e.By.Login),
		render.Instant(f.Now, e.At),
		because,
	)
	return render.Joined("\n\n", s, render.When(e.Raw != "", render.Fence(e.Raw, 500)))
}

// help answers an unknown command; word is the word after /pawl.
func help(slug, word string) string {
	p := &page{}
	if render.Line(word, 40) == "" {
		p.sentence("`/pawl` needs a command.")
	} else {
		p.sentence(render.Code("/pawl "+render.Line(word, 40)) + " is not a command. Nothing was done.")
	}
	if nearest := policy.NearestCommand(word); nearest != "" {
		p.sentence("Did you mean " + render.Code("/pawl "+nearest) + "?")
	}
	var known []string
	for _, c := range policy.Commands {
		if c.Help != "" {
			known = append(known, "`"+c.Usage()+"` "+c.Help)
		}
	}
	p.list(known...)
	if name := render.Label(slug); name != "" {
		p.sentence(render.Code("@"+name) + " at the start of a line means solve.")
	}
	p.sentence("A command begins a line outside quotes and code. Only users with write access can give commands.")
	return p.fit()
}

// paused answers /pawl pause and /pawl unpause. cannot is the reason if nothing was done.
func paused(repo string, pauses bool, cannot string) string {
	switch {
	case cannot != "":
		return "Nothing was done: " + render.Prose(cannot) + ".\n"
	case pauses:
		return "Nothing begins in " + render.Code(repo) +
			" until a maintainer comments `/pawl unpause`. Running attempts continue to their end.\n"
	}
	return "Work may begin in " + render.Code(repo) +
		" again. Runs that the pause stopped continue.\n"
}

// noBackend answers /pawl use for an unknown backend, or one that the repository's configuration excludes.
func noBackend(name string, all []string, excluded bool) string {
	why := "This server has no backend " + render.Code(render.Line(name, 40)) + ". Nothing was done."
	if excluded {
		why = "`.github/pawl.yml` of this repository does not list the backend " + render.Code(render.Label(name)) + ". Nothing was done."
	} else if render.Line(name, 40) == "" {
		why = "`/pawl use` needs the name of a backend. Nothing was done."
	}
	names := first(
		all,
		len(all),
		"backend",
		func(n string) string { return render.Code(render.Label(n)) },
	)
	return why + "\n\nBackends: " + strings.Join(names, ", ") + ".\n"
}

// RemarkAnswer returns the reply to a review comment after an attempt. It has the agent's words, else the commit that
// changed the lines; it is empty without either.
func RemarkAnswer(a policy.RemarkAnswer, verified bool, commit string) string {
	switch {
	case a.Declined:
		return "Not done. The agent says: " + render.Prose(a.Words)
	case a.Words != "" && verified:
		return "Done. The agent says: " + render.Prose(a.Words) + "\n\nCommit " +
			commit + " changed these lines, and the verify commands passed."
	case a.Words != "":
		return "The agent says: " + render.Prose(a.Words)
	case commit != "":
		return "Commit " + commit + " changed these lines. The agent says nothing about this comment."
	}
	return ""
}

// RemarkIgnored is the reply to a review comment that the attempt did not answer.
const RemarkIgnored = "The last attempt did not change these lines, and the agent says nothing about this comment."

// blockBegin and blockEnd enclose Pawl's part of a pull request's description.
const (
	blockBegin = "<!-- pawl:begin -->"
	blockEnd   = "<!-- pawl:end -->"
)

// PullBody returns Pawl's block in the description of an issue's pull request. It describes the work after the last
// attempt and does not depend on the time. A squash merge may turn it into a commit message, so quoted text must also
// be harmless as plain text.
func PullBody(f View) string {
	cost := totals(f.Attempts)
	f = f.Work()
	p := &page{}
	newest, worked := f.pushed(), f.worked()
	head := fmt.Sprintf("Closes #%d\n\n", f.Number)
	if len(newest.Instructs) > 0 {
		head = "**This changes the agents' instructions:** " +
			render.Inert(paths(newest.Instructs)) + "\n\n" + head
	}
	if worked.LastMessage() != "" {
		p.sentence("The agent says:\n\n" + render.Quote(worked.LastMessage(), maxMessage))
	}
	p.list(append(pullFacts(f, worked), cost)...)
	if len(newest.Folders) > 0 {
		p.sentence("Changes since the branch's base:")
		p.list(first(newest.Folders, 20, "folder", folder)...)
	}
	p.sentence("A review or a comment on this pull request leads to another attempt; `/pawl stop` ends the work. Pawl updates the part of the description between its two markers and keeps the rest.")
	p.fold("Request", requestText(f))
	// The link stays outside Inert, which would break a URL like /threads/acme/issues/7.
	foot := render.When(
		f.DetailsURL != "",
		"\n\n"+render.Link("all details of this thread", f.DetailsURL),
	)
	block := head +
		render.Inert(strings.TrimSuffix(p.fitIn(maxBytes-len(head)-len(foot)-len(blockBegin)-len(blockEnd)-3), "\n")) +
		foot
	// The empty line ends the last HTML block. Without it GitHub would not render Markdown after the block.
	return blockBegin + "\n" + block + "\n\n" + blockEnd
}

// WithBlock replaces Pawl's block in a description; false if the description has none.
func WithBlock(description, block string) (string, bool) {
	before, rest, ok := strings.Cut(description, blockBegin)
	if !ok {
		return "", false
	}
	i := strings.LastIndex(rest, blockEnd)
	if i < 0 {
		return "", false
	}
	return before + block + rest[i+len(blockEnd):], true
}

func folder(d policy.Folder) string {
	return fmt.Sprintf(
		"%s: %s, +%d −%d",
		render.Code(render.Line(d.Path, 200)),
		policy.Plural(d.Files, "file"),
		d.Added,
		d.Removed,
	)
}

func (f View) pushed() Attempt { return newestPushed(f.Attempts) }

// worked returns the newest pushed attempt that ran an agent.
func (f View) worked() Attempt {
	return newestPushed(slices.DeleteFunc(slices.Clone(f.Attempts), func(a Attempt) bool { return a.NoAgent }))
}

func newestPushed(all []Attempt) Attempt {
	for _, a := range slices.Backward(all) {
		if a.Pushed && a.Decision.Purpose == policy.ToChange {
			return a
		}
	}
	return Attempt{}
}

// pullFacts describe the whole pull request: its author, and whether its head is verified.
func pullFacts(f View, worked Attempt) []string {
	var facts []string
	if worked.N > 0 {
		facts = append(facts, fmt.Sprintf("attempt %d by %s", worked.N, backend(worked)))
	}
	facts = append(facts, f.inherited(), headFact(f), render.When(len(worked.LeftOut) > 0, "left out: "+paths(worked.LeftOut)))
	return append(facts, leftOpen(worked, true)...)
}

// inherited names the commits on the branch before the thread's first push; empty for none.
func (f View) inherited() string {
	var found []string
	for _, a := range f.Attempts {
		if len(a.Inherited) > 0 {
			found = a.Inherited
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"the branch existed before Pawl's first push, and Pawl builds on its %s: %s. To start again from the base, delete the branch and comment `/pawl retry`",
		policy.Plural(len(found), "commit"),
		render.Joined("; ", first(found, 5, "commit", func(c string) string { return render.Code(render.Line(c, 200)) })...),
	)
}

// headFact returns the result of the newest verification of the head commit.
func headFact(f View) string {
	if f.foreignHead() {
		return "not verified: another user pushed the head commit"
	}
	for _, a := range slices.Backward(f.Attempts) {
		v := a.Deciding()
		onHead := a.Pushed || !a.Progress()
		if v != nil && onHead {
			return "verification by " + render.Code(v.Command) + ": " + v.Result()
		}
		if a.Pushed {
			break // no later attempt verified it
		}
	}
	return "not verified: no verify command ran"
}

// The first sentences of a comment with an answer or a plan.
const (
	saidAnswer = "The agent's answer. Nothing was changed."
	planNote   = "The agent's plan. Nothing was changed yet. Edit this comment to change the plan; `/pawl go` then carries it out. `/pawl go TEXT` adds instructions."
)

// AnswerComment returns the comment with an agent's answer or plan.
func AnswerComment(a policy.Attempt) string {
	p := &page{}
	if a.Decision.Purpose == policy.ToPlan { // Markdown, for users to edit
		p.sentence(planNote)
		p.sentence(render.Document(a.Final, maxAnswer))
	} else {
		p.sentence(saidAnswer)
		p.sentence(render.Quote(a.Final, maxAnswer))
	}
	return p.fit()
}

// maxAnswer limits an answer or a plan, in bytes. Our choice.
const maxAnswer = 32_000

// PlanIn returns the plan in a comment of AnswerComment, with users' edits.
func PlanIn(comment string) string {
	return strings.TrimSpace(feedback.Visible(strings.Replace(comment, planNote, "", 1)))
}
