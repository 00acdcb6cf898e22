package feedback

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// Actor is a GitHub account. Type is User, Bot or Organization. The ID never changes; the login can.
type Actor struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

// Bot reports whether an account is a bot. Only bots' logins have brackets.
func (a Actor) Bot() bool { return a.Type == "Bot" || strings.HasSuffix(a.Login, "[bot]") }

// Typed reports whether a user asked in a comment, a review or by a button. Programs may write and edit issue
// descriptions.
func Typed(actor Actor, source policy.Source, target string) bool {
	if actor.Bot() || target == "issue" {
		return false
	}
	return isComment(source) || source == policy.FromButton
}

func isComment(s policy.Source) bool {
	switch s {
	case policy.FromComment, policy.FromReview, policy.FromReviewComment:
		return true
	default:
		return false
	}
}

func Writes(permission string) bool { return permission == "write" || Maintains(permission) }

// Maintains reports whether a permission allows pausing a repository.
func Maintains(permission string) bool { return permission == "admin" || permission == "maintain" }

// Enough returns the permission check for a command.
func Enough(c policy.CommandRow) func(permission string) bool {
	if c.Permission == policy.Maintain {
		return Maintains
	}
	return Writes
}

// Self identifies Pawl on GitHub.
type Self struct {
	AppID int64
	BotID int64
	Slug  string
	User  string // a user account that represents Pawl in assignments and review requests; empty for none
}

// Is reports whether an account is or represents Pawl.
func (s Self) Is(a Actor) bool {
	if byBot(a, s) {
		return true
	}
	return s.User != "" && strings.EqualFold(a.Login, s.User)
}

// Remark is an event on a thread that may ask for work.
type Remark struct {
	Source policy.Source
	Edited bool // a text was changed
	Actor  Actor
	Author Actor // of the text; differs from Actor after another user's edit
	App    int64 // the App that wrote it by API; 0 for none
	Text   string
	Was    string // the text before an edit
	// HasWas means that the edit changed the text.
	HasWas bool
	State  string // of a review or a label; or a check run's conclusion
	Name   string // of a label, check run or button
	To     Actor  // who was assigned or requested to review
	SHA    string // the commit of a check run or review

	parsed *Page // of Text
}

// Parsed caches the parsed text.
func (r Remark) Parsed() Remark {
	if r.parsed == nil {
		page := NewPage(r.Text)
		r.parsed = &page
	}
	return r
}

func (r Remark) page() Page { return *r.Parsed().parsed }

func (r Remark) Unquoted() string { return r.page().Unquoted() }

// byBot reports whether Pawl's bot user acted.
func byBot(a Actor, s Self) bool { return a.ID != 0 && a.ID == s.BotID }

// Scene is the state of the thread's log and of GitHub. Without a known permission, Judge accepts nothing.
type Scene struct {
	Self Self
	// ByPawl means that the log lists the remark's id as Pawl's own.
	ByPawl bool
	// Marked means that the text has a marker of Pawl.
	Marked bool
	// ByAgent means that an agent wrote the text during an attempt. It is unknown before the look-up AgentTexts.
	ByAgent bool
	// Tracked means that Pawl has worked on the thread.
	Tracked bool
	// ClosedSince is why the thread closed after the remark; else empty.
	ClosedSince string
	Working     bool
	// OwnPull means that Pawl opened the pull request.
	OwnPull bool
	// Asked means that the last attempt asked or declined.
	Asked bool
	Head  string // the commit whose checks matter; empty for none
	// Known lists description contents that were worked on or refused as unchanged.
	Known []string
	// TakenTexts lists comments that were worked on. Own holds the hashes of texts that Pawl published.
	TakenTexts  []string
	Own         []byte
	Label       string  // the label that means solve
	AllowedBots []int64 // the bots that may ask for work
	// Permission is the actor's, in GitHub's words; empty if unknown.
	Permission string
	Unseen     string // why GitHub does not show the repository to the App; else empty
	Looked     []Need // finished look-ups
}

// AgentsOwn begins the reason to ignore an agent's own remark.
const AgentsOwn = "the agent wrote it itself"

// Need is a look-up that a judgement requires. Each costs requests or log reads.
type Need string

const (
	// AgentTexts sets Scene.ByAgent.
	AgentTexts Need = "agent_texts"
	// Permission sets Scene.Permission.
	Permission Need = "permission"
	// Closing sets Scene.ClosedSince from GitHub.
	Closing Need = "closing"
)

// Judgement is the result for a remark. If Accepted and Needs are unset, the remark is ignored.
type Judgement struct {
	Accepted bool
	// Needs requests a look-up; then judge again.
	Needs  Need
	Reason string
	// Own means that the App itself acted. Such events are not shown.
	Own     bool
	Command Command // empty for a plain remark
	// Reply is the reply to an ignored remark: Refused, NotACommand, LooksLikeACommand or Maintainer; empty for none.
	Reply   string
	Text    string // for the agent
	Backend string // named by the command; empty for none
	// Description is an edited description's new content, or the content that an edit restored.
	Description string
}

func ignore(format string, args ...any) Judgement {
	return Judgement{Reason: fmt.Sprintf(format, args...)}
}

// Judge decides whether a remark is feedback: it asks for work, and its writer is not Pawl and may write.
func Judge(r Remark, s Scene) Judgement {
	r = r.Parsed()
	if reason, own := causedByPawl(r, s); reason != "" {
		return Judgement{Reason: reason, Own: own}
	}
	if r.unwatches(s) { // anyone who may remove a label may end a watch
		return asksToWatch(r)
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
	if s.Unseen != "" {
		return ignore("%s", s.Unseen)
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

// strangeBot reports whether a bot outside AllowedBots acted. All check runs come from bots.
func strangeBot(r Remark, s Scene) bool {
	if r.Source == policy.FromCheckRun || !r.Actor.Bot() {
		return false
	}
	return !slices.Contains(s.AllowedBots, r.Actor.ID)
}

func (j Judgement) begins() bool { return j.Accepted && j.Command.Works() }

// empty reports whether the judgement has no effect. A restored description has one: it also needs the permission.
func (j Judgement) empty() bool { return !j.Accepted && j.Description == "" && j.Reply == "" }

func refuse(j Judgement, r Remark, s Scene) Judgement {
	if j.Reply != "" { // users without permission get no replies about commands
		j.Reply = ""
		return j
	}
	refused := ignore("%s has %s permission; write is needed", r.Actor.Login, s.Permission)
	if j.Command.Name != "" && byPerson(r) {
		refused.Reply = Refused
	}
	return refused
}

func refuseMaintainers(command string, r Remark, s Scene) Judgement {
	j := ignore("%s has %s permission; %s needs maintain", r.Actor.Login, cmp.Or(s.Permission, "no known"), command)
	if byPerson(r) {
		j.Reply = Maintainer
	}
	return j
}

// mayWrite reports whether the writer has write permission or is an allowed bot.
func mayWrite(r Remark, s Scene) bool {
	return r.Actor.Bot() || Writes(s.Permission)
}

// needs returns the next look-up before a remark counts; empty for none.
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
		return "" // a closed thread does not matter
	}
	if s.lacks(Closing) {
		return Closing
	}
	return ""
}

func (s Scene) lacks(need Need) bool { return !slices.Contains(s.Looked, need) }

// causedByPawl returns why a remark is Pawl's own, under any actor; else empty. own means that GitHub names Pawl. For
// a check run the App counts: its actor is the pusher.
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

// writtenByPawl returns the reason if Pawl or its agent wrote the text, under any login; else empty.
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

// mayBePawls reports whether the text can make a remark Pawl's own. A stop in a comment cannot: an agent must not be
// able to void a user's stop.
func mayBePawls(r Remark, s Scene) bool {
	if isComment(r.Source) {
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
	case policy.FromBase: // GitHub reports it without a writer
	}
	return ignore("%s is not a source of feedback", r.Source)
}

// watches, after a colon, completes the label that means watch. Removed and Present are the states of its remarks.
const (
	watches = "watch"
	Removed = "removed" // the label was removed
	Present = "present" // the pull request has the label and was reopened or left draft
)

func (r Remark) isWatchLabel(s Scene) bool {
	return r.Source == policy.FromLabel && strings.EqualFold(r.Name, s.Label+":"+watches)
}

// unwatches reports whether the label that means watch was removed.
func (r Remark) unwatches(s Scene) bool { return r.isWatchLabel(s) && r.State == Removed }

func asksByLabel(r Remark, s Scene) Judgement {
	if r.isWatchLabel(s) {
		return asksToWatch(r)
	}
	label, backend, _ := strings.Cut(r.Name, ":")
	if !strings.EqualFold(label, s.Label) {
		return ignore("label %q is not %q", r.Name, s.Label)
	}
	j := solves(s, fmt.Sprintf("label %q was added", r.Name))
	j.Backend = strings.TrimSpace(backend)
	return j
}

func asksToWatch(r Remark) Judgement {
	switch r.State {
	case Removed:
		return Judgement{Accepted: true, Reason: fmt.Sprintf("label %q was removed", r.Name), Command: Command{Name: "unwatch"}}
	case Present:
		return Judgement{Accepted: true, Reason: fmt.Sprintf("the pull request has the label %q", r.Name), Command: Command{Name: "watch"}}
	}
	return Judgement{Accepted: true, Reason: fmt.Sprintf("label %q was added", r.Name), Command: Command{Name: "watch"}}
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

// failed returns why a check run is not feedback by itself. All checks of a commit are evaluated together
// (thread.Checked).
func failed(r Remark, s Scene) Judgement {
	if !Failing(r.State) {
		return ignore("check run %q concluded %s", r.Name, r.State)
	}
	if s.Head == "" || r.SHA != s.Head {
		return ignore("check run %q is not about the last commit that Pawl looks at", r.Name)
	}
	return ignore("check run %q failed; the checks of a commit are looked at together", r.Name)
}

// solves asks for work without a text, unless the thread is being worked on.
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
	meant := r.page().Near(s.Self.Slug)
	why := listens(r, s)
	if why == "" || r.onlyAttempts(meant) {
		return r.noOrder(meant.Name, s)
	}
	if reason := noRequest(r, s); reason != "" {
		return ignore("%s", reason)
	}
	return accept(why, text)
}

// onlyAttempts reports whether a user meant a command that begins no work. Other words are requests where Pawl listens.
func (r Remark) onlyAttempts(meant Attempt) bool {
	if !byPerson(r) || !meant.Whole {
		return false
	}
	return !Command{Name: meant.Name}.Works()
}

// noOrder ignores words without a command. meant is the command that their writer may have meant; empty for none.
func (r Remark) noOrder(meant string, s Scene) Judgement {
	j := ignore("it holds no command, and the thread is not a pull request of Pawl")
	if meant != "" {
		j = ignore("it holds no command, only what looks like %s", meant)
	}
	switch {
	case !byPerson(r):
	case meant != "":
		j.Reply = LooksLikeACommand
	case r.page().Mentions(s.Self.Slug):
		j.Reply = NotACommand
	}
	return j
}

// emptyEdit returns why an edit does not count; else empty.
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

// listens returns why Pawl accepts text without a command; else empty.
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

// noRequest returns why a text asks for nothing; else empty.
func noRequest(r Remark, s Scene) string {
	own := r.page().Own()
	if own == "" {
		return "it says nothing but what it quotes"
	}
	if courteous(own) {
		return "thanks, emoji and approvals ask for no work"
	}
	same := func(text string) bool { return sameWords(text, r.page().Visible()) }
	if r.Source == policy.FromComment && slices.ContainsFunc(s.TakenTexts, same) {
		return "an attempt was made for the same words before; /pawl retry makes another one"
	}
	return ""
}

func asksByDescription(r Remark, s Scene) Judgement {
	if !s.Tracked {
		return r.untrackedEdit(s)
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

// untrackedEdit ignores the edit of a description on a thread that Pawl does not work on. Reply reports a command that
// a user added there.
func (r Remark) untrackedEdit(s Scene) Judgement {
	j := ignore("Pawl does not work on this thread")
	if r.Actor.Bot() || r.App != 0 || !r.HasWas {
		return j
	}
	_, before := ParseCommand(r.Was, s.Self.Slug)
	if _, now := r.page().Command(s.Self.Slug); now && !before {
		j.Reply = LooksLikeACommand
	}
	return j
}

func accept(reason, text string) Judgement {
	return Judgement{Accepted: true, Reason: reason, Text: text}
}
