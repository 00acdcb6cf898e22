package feedback

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// Actor is an account at GitHub. ID stays when the login changes; Type is User, Bot or Organization.
type Actor struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

// Bot reports whether an account is one. No person can have a login with brackets, so
// it tells also where the type is missing.
func (a Actor) Bot() bool { return a.Type == "Bot" || strings.HasSuffix(a.Login, "[bot]") }

// Typed reports whether a person asked in a comment, a review or by a button. The text
// that an issue was opened with, and its edits, may be a program's.
func Typed(actor Actor, source policy.Source, target string) bool {
	if actor.Bot() || target == "issue" {
		return false
	}
	return spoken(source) || source == policy.FromButton
}

// spoken reports whether a source is somebody's words.
func spoken(s policy.Source) bool {
	switch s {
	case policy.FromComment, policy.FromReview, policy.FromReviewComment:
		return true
	default:
		return false
	}
}

func Writes(permission string) bool { return permission == "write" || Maintains(permission) }

// Maintains reports whether a permission is enough to pause the work in a repository, which concerns everybody there.
func Maintains(permission string) bool { return permission == "admin" || permission == "maintain" }

// Enough returns what reports whether a permission is enough for a command.
func Enough(c policy.CommandRow) func(permission string) bool {
	if c.Permission == policy.Maintain {
		return Maintains
	}
	return Writes
}

// Self is Pawl's own identity at GitHub: the App, its bot user, and its slug.
type Self struct {
	AppID int64
	BotID int64
	Slug  string
	User  string // the login of a person's account by which Pawl is assigned and asked for reviews; empty for none
}

// Is reports whether an account is Pawl, or stands for it.
func (s Self) Is(a Actor) bool {
	if byBot(a, s) {
		return true
	}
	return s.User != "" && strings.EqualFold(a.Login, s.User)
}

// Remark is one thing that happened on a thread and may ask for work. The zero value asks for nothing.
type Remark struct {
	Source policy.Source
	Edited bool // an existing text was changed
	Actor  Actor
	Author Actor // of the text; differs from Actor when somebody edits another's
	App    int64 // the App that wrote it through the API; 0 for none
	Text   string
	Was    string // the text before an edit
	// HasWas tells an edit of the text from an edit of something else.
	HasWas bool
	State  string // of a review, or the conclusion of a check run
	Name   string // of a label, check run or button
	To     Actor  // who was assigned or asked for a review
	SHA    string // the commit that a check run or review is about

	parsed *Page // of Text; see Parsed
}

// Parsed is the remark with its text parsed, for somebody who judges it more than once.
func (r Remark) Parsed() Remark {
	if r.parsed == nil {
		page := NewPage(r.Text)
		r.parsed = &page
	}
	return r
}

// page is the text of the remark, parsed.
func (r Remark) page() Page { return *r.Parsed().parsed }

// Unquoted is the text of the remark without quotations.
func (r Remark) Unquoted() string { return r.page().Unquoted() }

// byBot reports whether the bot did something, whose zero id is nobody.
func byBot(a Actor, s Self) bool { return a.ID != 0 && a.ID == s.BotID }

// Scene is what the thread's log and GitHub say around a remark. In the zero
// value nothing is known, and nothing is accepted before a permission is.
type Scene struct {
	Self Self
	// ByPawl says that the log holds the remark's id as something Pawl wrote.
	ByPawl bool
	// Marked says that the text carries a marker of Pawl.
	Marked bool
	// ByAgent says that the text consists of what an agent itself wrote in an
	// attempt that ran at the time. It need not be known before AgentTexts is needed.
	ByAgent bool
	// Tracked says that Pawl has worked on the thread.
	Tracked bool
	// ClosedSince is why the thread cannot be worked on, where that is so since
	// after the remark was made; empty otherwise.
	ClosedSince string
	// Working says that a run is open on the thread.
	Working bool
	// OwnPull says that the pull request was opened by Pawl.
	OwnPull bool
	// Asked says that the work waits for an answer: the last attempt asked a question, or declined the task.
	Asked bool
	Head  string // the last commit that Pawl pushed to the thread's branch
	// Known are descriptions, as Content gives them, that were already worked
	// on or already refused as no change.
	Known []string
	// Said are the comments that were worked on, Own the texts that Pawl published.
	Said        []string
	Own         []byte
	Label       string  // the label that means solve
	AllowedBots []int64 // the numeric ids of bots that may ask for work
	// Permission is the actor's permission on the repository as GitHub names
	// it; empty when it was not looked up.
	Permission string
	Looked     []Need // what was looked up, whatever came of it
}

// AgentsOwn begins the reason why a remark that an agent itself wrote is none.
const AgentsOwn = "the agent wrote it itself"

// Need is what a judgement waits for. Looking it up costs requests or reads
// logs, so it is asked for only where it matters.
type Need string

const (
	// AgentTexts are what agents wrote: Scene.ByAgent.
	AgentTexts Need = "agent_texts"
	// Permission is the actor's: Scene.Permission.
	Permission Need = "permission"
	// Closing is whether GitHub knows of one since the remark, where no log tells: Scene.ClosedSince.
	Closing Need = "closing"
)

// Judgement is what a remark came to. At most one of Accepted and Needs is set;
// where neither is, the remark is ignored.
type Judgement struct {
	Accepted bool
	// Needs asks the caller to look this up and to judge again.
	Needs  Need
	Reason string
	// Own says that the App did it itself. Such things are expected, and tell people nothing.
	Own     bool
	Command Command // the command that was given; empty for a plain remark
	// Tell is what the person who made a remark is told although nothing is done: Refused, NoOrder or Maintainer; empty for nothing.
	Tell    string
	Text    string // what the agent is to read
	Backend string // that the order names; empty for none
	// Description is the new content of an edited description: of one that
	// counts, or of one that takes an earlier edit back.
	Description string
}

func ignore(format string, args ...any) Judgement {
	return Judgement{Reason: fmt.Sprintf(format, args...)}
}

// Judge decides whether a remark is feedback: it must be by somebody else, ask
// for work in a way Pawl listens to, and come from a person who may write.
func Judge(r Remark, s Scene) Judgement {
	r = r.Parsed()
	if reason, own := causedByPawl(r, s); reason != "" {
		return Judgement{Reason: reason, Own: own}
	}
	if strangeBot(r, s) {
		return ignore("%s is a bot that is not in allowed_bots", r.Actor.Login)
	}
	j := asks(r, s)
	if j.begins() && s.ClosedSince != "" {
		return ignore("%s after it was made", s.ClosedSince)
	}
	if j.empty() {
		return j
	}
	if need := needs(j, r, s); need != "" {
		return Judgement{Needs: need, Reason: fmt.Sprintf("the %s is not known yet", need)}
	}
	if !mayWrite(r, s) {
		return refuse(j, r, s)
	}
	command := policy.CommandNamed(j.Command.Name)
	if command.Permission == policy.Maintain && !Maintains(s.Permission) {
		return refuseMaintainers(command.Name, r, s)
	}
	return j
}

// strangeBot reports whether a bot did it that nobody allowed. Check runs are reported by bots.
func strangeBot(r Remark, s Scene) bool {
	if r.Source == policy.FromCheckRun || !r.Actor.Bot() {
		return false
	}
	return !slices.Contains(s.AllowedBots, r.Actor.ID)
}

// begins reports whether work begins by it.
func (j Judgement) begins() bool { return j.Accepted && j.Command.Works() }

// empty reports whether nothing follows. Who takes back what was asked for needs the permission as well.
func (j Judgement) empty() bool { return !j.Accepted && j.Description == "" && j.Tell == "" }

// refuse is for somebody who may not write.
func refuse(j Judgement, r Remark, s Scene) Judgement {
	if j.Tell != "" { // such a user need not know what is a command
		j.Tell = ""
		return j
	}
	refused := ignore("%s has %s permission; write is needed", r.Actor.Login, s.Permission)
	if j.Command.Name != "" && byPerson(r) {
		refused.Tell = Refused
	}
	return refused
}

// refuseMaintainers is for somebody who may write, but not give a command that concerns everybody.
func refuseMaintainers(command string, r Remark, s Scene) Judgement {
	j := ignore("%s has %s permission; %s needs maintain", r.Actor.Login, cmp.Or(s.Permission, "no known"), command)
	if byPerson(r) {
		j.Tell = Maintainer
	}
	return j
}

// mayWrite reports whether it is enough who made a remark. GitHub knows no permission of bots: for those that
// come this far the operator's list stands in its place.
func mayWrite(r Remark, s Scene) bool {
	return r.Actor.Bot() || Writes(s.Permission)
}

// needs is what has to be looked up for a remark that would count otherwise; empty where that was done.
func needs(j Judgement, r Remark, s Scene) Need {
	if s.lacks(AgentTexts) && mayBePawls(r, s) {
		return AgentTexts
	}
	if !mayWrite(r, s) {
		if s.lacks(Permission) && s.Permission == "" {
			return Permission
		}
		return ""
	}
	if s.Tracked || !j.begins() {
		return "" // it does not matter whether the thread was closed
	}
	if s.lacks(Closing) {
		return Closing
	}
	return ""
}

// lacks reports whether something was not looked up yet.
func (s Scene) lacks(need Need) bool { return !slices.Contains(s.Looked, need) }

// causedByPawl says why a remark counts as Pawl's own doing, whoever GitHub says did it; empty when it does
// not. own says that GitHub itself names Pawl: of a check run it is the App that counts, since as the actor
// GitHub names whoever pushed, which on Pawl's branch is Pawl.
func causedByPawl(r Remark, s Scene) (reason string, own bool) {
	app := r.App != 0 && r.App == s.Self.AppID
	if r.Source == policy.FromCheckRun {
		if app {
			return "it was written by this App", true
		}
		return "", false
	}
	if byBot(r.Actor, s.Self) {
		return "it was done by this App's bot user", true
	}
	if r.Source == policy.FromButton {
		return "", false
	}
	if app {
		return "it was written by this App", false
	}
	if byBot(r.Author, s.Self) {
		return "the text belongs to this App's bot user", false
	}
	return writtenByPawl(r, s), false
}

// writtenByPawl says why the text of a remark is Pawl's or its agent's, whoever posted it; empty where it is not.
func writtenByPawl(r Remark, s Scene) string {
	switch {
	case !mayBePawls(r, s):
		return ""
	case s.ByPawl:
		return "the log holds it as something that Pawl wrote"
	case copied(r, s):
		return "it is a copy of what Pawl wrote"
	case s.Marked:
		return "it carries a marker of Pawl"
	case s.ByAgent:
		return AgentsOwn + " during an attempt"
	}
	return ""
}

// mayBePawls reports whether the text of a remark can make it Pawl's own doing. A stop cannot: an agent that
// says stop harms nobody; one that could make a person's stop count as its own would. An edited description
// that says so is no command but work, for which the agent must not ask.
func mayBePawls(r Remark, s Scene) bool {
	if spoken(r.Source) {
		c, _ := r.page().Command(s.Self.Slug)
		return c.Name != "stop"
	}
	switch r.Source {
	case policy.FromButton, policy.FromCheckRun:
		return false
	default:
		return true
	}
}

func asks(r Remark, s Scene) Judgement {
	switch r.Source {
	case policy.FromComment, policy.FromReview, policy.FromReviewComment:
		return asksByText(r, s)
	case policy.FromDescription:
		return asksByDescription(r, s)
	case policy.FromLabel:
		return asksByLabel(r, s)
	case policy.FromAssignment:
		if !s.Self.Is(r.To) {
			return ignore("%s was %s, not Pawl", r.To.Login, r.Name)
		}
		return solves(s, fmt.Sprintf("%s was %s", r.To.Login, r.Name))
	case policy.FromButton:
		return asksByButton(r, s)
	case policy.FromCheckRun:
		return failed(r, s)
	case policy.FromBase: // GitHub says of it what it asks for, and nobody remarks it
	}
	return ignore("%s is not a source of feedback", r.Source)
}

func asksByLabel(r Remark, s Scene) Judgement {
	label, backend, _ := strings.Cut(r.Name, ":")
	if !strings.EqualFold(label, s.Label) {
		return ignore("label %q is not %q", r.Name, s.Label)
	}
	j := solves(s, fmt.Sprintf("label %q was added", r.Name))
	j.Backend = strings.TrimSpace(backend)
	return j
}

func asksByButton(r Remark, s Scene) Judgement {
	if r.App != s.Self.AppID {
		return ignore("the button belongs to another App")
	}
	if policy.CommandNamed(r.Name).Button == "" {
		return ignore("button %q is none of Pawl's", r.Name)
	}
	return Judgement{Accepted: true, Reason: fmt.Sprintf("button %q", r.Name), Command: Command{Name: r.Name}}
}

// failed says why a check run is no feedback by itself. The red checks of a commit are a state, which is looked at once
// they are over (thread.Checked).
func failed(r Remark, s Scene) Judgement {
	if !Failing(r.State) {
		return ignore("check run %q concluded %s", r.Name, r.State)
	}
	if s.Head == "" || r.SHA != s.Head {
		return ignore("check run %q is not about the last commit that Pawl pushed", r.Name)
	}
	return ignore("check run %q failed on Pawl's commit; the checks of a commit are looked at together", r.Name)
}

// solves asks for work without words, which a thread that is being worked on has no need of.
func solves(s Scene, why string) Judgement {
	if s.Working {
		return ignore("%s, and the thread is already being worked on", why)
	}
	return Judgement{Accepted: true, Reason: why, Command: Command{Name: "solve"}}
}

func asksByText(r Remark, s Scene) Judgement {
	if reason := emptyEdit(r); reason != "" {
		return ignore("%s", reason)
	}
	if c, ok := r.page().Command(s.Self.Slug); ok && !c.thanks() {
		return Judgement{Accepted: true, Reason: "command " + c.Name, Command: c, Text: c.Text}
	}
	text := r.page().Visible()
	switch {
	case r.requestsChanges() && s.Tracked:
		return accept("a review requests changes", text)
	case r.approves() && courteous(r.page().Own()):
		return ignore("an approval asks for no work")
	case strings.TrimSpace(text) == "":
		return ignore("there is no text to work on")
	}
	why := listens(r, s)
	if why == "" {
		j := ignore("it holds no command, and the thread is no pull request of Pawl")
		if byPerson(r) && r.page().Mentions(s.Self.Slug) {
			j.Tell = NoOrder
		}
		return j
	}
	if reason := noRequest(r, s); reason != "" {
		return ignore("%s", reason)
	}
	return accept(why, text)
}

// emptyEdit says why an edit of a text is none that counts; empty where it counts, and for a new text.
func emptyEdit(r Remark) string {
	switch {
	case !r.Edited:
		return ""
	case !r.HasWas:
		return "the text was not edited"
	case r.Actor.ID != r.Author.ID:
		return fmt.Sprintf("%s edited the text of %s; only the author's own edit counts", r.Actor.Login, r.Author.Login)
	case onlyMoves(Content(r.Was), r.page().Content(), nil):
		return "the edit did not change the content"
	}
	return ""
}

func (r Remark) requestsChanges() bool {
	return r.Source == policy.FromReview && r.State == "changes_requested"
}

func (r Remark) approves() bool { return r.Source == policy.FromReview && r.State == "approved" }

// listens says why Pawl listens to words without a command there; empty where it does not.
func listens(r Remark, s Scene) string {
	switch {
	case r.Source == policy.FromReviewComment && s.Tracked:
		return "a review comment on a pull request that Pawl works on"
	case s.OwnPull && r.Source == policy.FromReview:
		return "a review remark on Pawl's pull request"
	case s.OwnPull:
		return "a new comment on Pawl's pull request"
	case s.Asked && r.Source == policy.FromComment:
		return "an answer to what the agent asked"
	}
	return ""
}

// noRequest says why words ask for nothing; empty where they may.
func noRequest(r Remark, s Scene) string {
	own := r.page().Own()
	if own == "" {
		return "it says nothing but what it quotes"
	}
	if courteous(own) {
		return "thanks, emoji and approvals ask for no work"
	}
	same := func(said string) bool { return sameWords(said, r.page().Visible()) }
	if r.Source == policy.FromComment && slices.ContainsFunc(s.Said, same) {
		return "an attempt was made for the same words before; /pawl retry makes another one"
	}
	return ""
}

func asksByDescription(r Remark, s Scene) Judgement {
	if !s.Tracked {
		return ignore("Pawl does not work on this thread")
	}
	if !r.HasWas {
		return ignore("the description was not edited")
	}
	diff, changed := DescriptionDiff(r.Was, r.Text)
	if !changed {
		return ignore("the description's content did not change")
	}
	content := r.page().Content()
	if slices.ContainsFunc(s.Known, func(known string) bool { return sameWords(known, content) }) {
		return Judgement{Reason: "the description was edited back to a text that is already known", Description: content}
	}
	if onlyMoves(Content(r.Was), content, s.Known) {
		return ignore("nothing but times, counters or hashes of the description changed")
	}
	j := accept("the description's content changed", diff)
	j.Description = content
	return j
}

func accept(reason, text string) Judgement {
	return Judgement{Accepted: true, Reason: reason, Text: text}
}
