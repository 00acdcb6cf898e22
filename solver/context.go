package solver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// reader reads what an attempt is told of its thread beside the task, as it was when the attempt was asked for.
type reader struct {
	pub   *publisher
	asked time.Time                // when
	known map[thread.Target]bool   // what is the task itself
	agent map[thread.Target]bool   // what an agent wrote itself, under whichever name
	texts map[thread.Target]string // of what was judged, as it was then
	roles map[string]string        // by login, of those who were asked about
	asks  int                      // how many may still be asked about
	err   error                    // of the first question that GitHub did not answer; no optional one follows it
	// pictured are those of what is told that show pictures, by their nodes.
	pictured map[string]attempt.Item
}

// maxAsked bounds the accounts whose permission is asked for one attempt; the newest come first, and of more it is not
// known.
const maxAsked = 5

// unread is the note on what GitHub did not show. An attempt begins without it.
const unread = "left out, since GitHub did not show them"

// discussion is what an attempt is told beside its task, which is this work. The manifest names what GitHub does not show.
func (p *publisher) discussion(ctx context.Context, work []thread.Request) ([]attempt.Part, error) {
	if p.Forge == nil || p.Config.Context.MaxBytes == 0 {
		return nil, nil
	}
	r := p.newReader(work)
	parts := r.read(ctx, work)
	if ctx.Err() != nil || concernsThread(r.err) {
		return nil, r.err
	}
	if r.err != nil {
		p.log.Warn().Err(r.err).Msg("the attempt begins without a part of the discussion")
	}
	return parts, nil
}

// concernsThread reports whether GitHub said something of the whole thread: it has moved, the App is gone, or must wait.
func concernsThread(err error) bool {
	var moved *forge.Moved
	var limited *forge.RateLimited
	if errors.As(err, &moved) || errors.As(err, &limited) {
		return true
	}
	return isAny(err, forge.ErrUninstalled, forge.ErrUnauthorized, thread.ErrLeaseLost)
}

// newReader knows from the log what was said, and what a program said under a user's name.
func (p *publisher) newReader(work []thread.Request) *reader {
	r := &reader{
		pub:      p,
		known:    map[thread.Target]bool{},
		agent:    map[thread.Target]bool{},
		texts:    map[thread.Target]string{},
		roles:    map[string]string{},
		asks:     maxAsked,
		pictured: map[string]attempt.Item{},
	}
	for _, w := range work {
		r.asked = policy.Later(r.asked, w.Made())
		r.known[w.Target.Bare()] = true
	}
	if r.asked.IsZero() {
		r.asked = p.env.Now()
	}
	for _, f := range p.state.Ignored {
		if strings.HasPrefix(f.Reason, feedback.AgentsOwn) {
			r.agent[f.Target.Bare()] = true
		}
	}
	for _, f := range p.state.Feedback {
		r.texts[f.Target.Bare()] = cmp.Or(f.Raw, f.Text)
		if strings.HasPrefix(f.Withdrawn, feedback.AgentsOwn) {
			r.agent[f.Target.Bare()] = true
		}
		if feedback.Typed(f.By, f.Source, "") {
			r.roles[f.By.Login] = "writer" // else it would not have been accepted
		}
	}
	return r
}

func (r *reader) read(ctx context.Context, work []thread.Request) []attempt.Part {
	most, numbers := r.pub.Config.Context.MaxBytes, []int{r.pub.thread.Number}
	own := r.pub.state.Pull
	if own != 0 && own != r.pub.thread.Number {
		numbers = append(numbers, own)
	}
	texts := []string{r.pub.state.Snapshot.Title, r.pub.state.Snapshot.Body}
	for _, w := range work {
		texts = append(texts, w.Text)
	}
	var parts []attempt.Part
	var linked []int
	var first forge.Discussion
	for i, n := range numbers {
		of := ""
		if i > 0 {
			of = fmt.Sprintf(" on pull request #%d", n)
		}
		d, err := r.pub.Forge.Discussions.Read(ctx, r.pub.repo(), n, most)
		if err != nil {
			r.err = cmp.Or(r.err, err)
			parts = append(parts, attempt.Part{Name: "comments" + of, Notes: []string{unread}})
			continue
		}
		if i == 0 {
			first = d
		}
		comments := r.said(ctx, "issue_comment", "comments"+of, d.Comments.Nodes, d.Comments.Total)
		reviews := r.said(ctx, "review", "reviews"+of, slices.DeleteFunc(d.Reviews.Nodes, func(s forge.Said) bool { return strings.TrimSpace(s.Text) == "" }), d.Reviews.Total)
		parts = append(parts, files(d, of), r.commits(d, of), r.remarks(ctx, "remarks on lines"+of, d), reviews, comments)
		for _, c := range d.Closes.Nodes {
			linked = append(linked, c.Number)
		}
		for _, item := range append(reviews.Items, comments.Items...) {
			if item.Role != "" {
				texts = append(texts, item.Text)
			}
		}
	}
	shown := r.pictures(ctx, first)
	// What is linked comes before the discussion, of which there may be any amount.
	return append([]attempt.Part{r.linked(ctx, append(linked, references(texts)...), numbers), shown}, parts...)
}

// said are comments or reviews, without Pawl's own, those that are the task, and what was written or edited later.
func (r *reader) said(ctx context.Context, kind, name string, all []forge.Said, total int) attempt.Part {
	p := attempt.Part{Name: name, Of: total, Share: 2}
	left := map[string]int{}
	for _, s := range slices.Backward(all) {
		of := thread.Target{Kind: kind, ID: int64(s.ID)}
		switch {
		case s.By.Account() == r.pub.app.BotLogin:
			p.Of--
		case r.known[of]:
			p.Of--
			r.item(ctx, s) // its pictures are not in the task
		case r.agent[of]:
			left["written by an agent"]++
		case s.At.After(r.asked):
			left["written after the order"]++
		case !s.Edited.Before(r.asked): // times have whole seconds
			left["edited after the order"]++
		case s.Hidden:
			left["hidden by people"]++
		default:
			item := r.item(ctx, s)
			if then := r.texts[of]; then != "" {
				item.Text = feedback.Visible(then)
			}
			if s.State != "" {
				item.Where = strings.ToLower(strings.ReplaceAll(s.State, "_", " ")) + onCommit(s.On.SHA)
			}
			p.Items = append(p.Items, item)
		}
	}
	slices.Reverse(p.Items)
	p.Notes = notes(left)
	return p
}

// notes says how many were left out, by why.
func notes(left map[string]int) (out []string) {
	for _, why := range slices.Sorted(maps.Keys(left)) {
		out = append(out, fmt.Sprintf("%d left out that were %s", left[why], why))
	}
	return out
}

func (r *reader) item(ctx context.Context, s forge.Said) attempt.Item {
	item := attempt.Said(s.By.Account(), r.role(ctx, s), s.By.Bot(), s.At, "", s.Text)
	if shows.MatchString(s.Text) {
		r.pictured[s.Node] = item
	}
	return item
}

// shows finds what may be a picture in a text.
var shows = regexp.MustCompile(`!\[|(?i)<img\b`)

// pictures are what people attached to what is told. Those of people who may not write are files like the others, but
// no CLI is started with them.
func (r *reader) pictures(ctx context.Context, d forge.Discussion) attempt.Part {
	p := attempt.Part{Name: "pictures", Share: 8, Files: map[string]string{}}
	if shows.MatchString(d.Body) {
		r.pictured[d.Node] = attempt.Said(d.By.Account(), r.role(ctx, forge.Said{By: d.By, Association: d.Association}), d.By.Bot(), d.At, "", "")
	}
	if len(r.pictured) == 0 || !r.pub.Config.Context.Pictures {
		return p
	}
	if r.err != nil {
		p.Notes = []string{unread}
		return p
	}
	oldest := slices.SortedFunc(maps.Keys(r.pictured), func(a, b string) int { return r.pictured[a].At.Compare(r.pictured[b].At) })
	all, left, err := r.pub.Forge.Discussions.Pictures(ctx, r.pub.repo(), oldest, r.asked)
	if err != nil {
		r.err, p.Notes = err, []string{unread}
		return p
	}
	for i, picture := range all {
		item, name := r.pictured[picture.Node], fmt.Sprintf("picture-%d.%s", i+1, picture.Format)
		item.Where, item.Text = name, "attached to what was said then"
		p.Items, p.Files[name] = append(p.Items, item), string(picture.Data)
	}
	p.Of = len(all) + left
	if left > 0 {
		p.Notes = []string{fmt.Sprintf("%d left out that GitHub does not keep, or that are too large, too many or of another format than png, jpeg and gif", left)}
	}
	return p
}

// role is what somebody may do in the repository; empty for who may not write, as far as is known.
func (r *reader) role(ctx context.Context, s forge.Said) string {
	login := s.By.Account()
	role, known := r.roles[login]
	if known || !mayWrite(s) || !r.mayAsk() {
		return role
	}
	r.asks--
	var permission string
	permission, r.err = r.pub.Forge.Repositories.Permission(ctx, r.pub.repo(), login)
	switch permission {
	case "admin", "maintain":
		role = "maintainer"
	case "write":
		role = "writer"
	}
	r.roles[login] = role
	return role
}

// mayWrite reports whether a writer may have the permission to write, by what GitHub says of every comment.
func mayWrite(s forge.Said) bool {
	if s.By.Account() == "" || s.By.Bot() {
		return false
	}
	return slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, s.Association)
}

// mayAsk reports whether GitHub may be asked for another permission.
func (r *reader) mayAsk() bool { return r.asks > 0 && r.err == nil }

// changedLater reports whether something was written, edited or hidden after the attempt was asked for.
func (r *reader) changedLater(s forge.Said) bool {
	return s.Hidden || s.At.After(r.asked) || !s.Edited.Before(r.asked)
}

// hunkLines is how many of the last lines of a diff stand above a remark on them.
const hunkLines = 12

// remarks are the threads of a review that are not resolved, each with the lines that it is about.
func (r *reader) remarks(ctx context.Context, name string, d forge.Discussion) attempt.Part {
	p := attempt.Part{Name: name, Of: d.Threads.Total, Share: 2}
	left := map[string]int{}
	for _, t := range slices.Backward(d.Threads.Nodes) {
		if t.Resolved {
			left["resolved"]++
			continue
		}
		var said []string
		var first forge.Said
		for _, s := range t.Comments.Nodes {
			if r.changedLater(s) {
				continue
			}
			if len(said) == 0 {
				first = s
			}
			item := r.item(ctx, s)
			if r.known[thread.Target{Kind: "review_comment", ID: int64(s.ID)}] {
				item.Text = "(told above)"
			}
			said = append(said, item.Render())
		}
		if len(said) == 0 {
			left["written or edited after the order"]++
			continue
		}
		if !t.Outdated {
			p.Open = append(p.Open, int64(first.ID))
		}
		hunk := strings.Split(first.Hunk, "\n")
		hunk = hunk[max(0, len(hunk)-hunkLines):]
		item := attempt.Item{Where: fmt.Sprintf("remark %d, %s%s", first.ID, onLines(t, first.Text), onCommit(first.On.SHA)), At: first.At,
			Text: "| " + strings.Join(hunk, "\n| ") + "\n" + strings.Join(said, "")}
		if t.Side != "LEFT" { // whose lines are those of the commit before the change
			item.Lines = attempt.Lines{Commit: first.On.SHA, Path: t.Path, First: cmp.Or(t.WasStart, t.Was), Last: t.Was}
		}
		p.Items = append(p.Items, item)
	}
	slices.Reverse(p.Items)
	slices.Reverse(p.Open)
	p.Notes = notes(left)
	return p
}

// files are what a pull request changes.
func files(d forge.Discussion, of string) attempt.Part {
	p := attempt.Part{Name: "changed files" + of, Of: d.Files.Total, Share: 8}
	for _, f := range d.Files.Nodes {
		p.Items = append(p.Items, attempt.Item{Text: fmt.Sprintf("%s +%d −%d %s", render.Line(f.Path, 300), f.Additions, f.Deletions, strings.ToLower(f.Change))})
	}
	return p
}

// commits are those of a pull request since the last attempt, or all before the first.
func (r *reader) commits(d forge.Discussion, of string) attempt.Part {
	p := attempt.Part{Name: "commits" + of, Share: 8}
	var since time.Time
	for _, a := range r.pub.state.Attempts {
		since = a.EndedAt
	}
	if !since.IsZero() {
		p.Name = "commits since the last attempt" + of
	}
	for _, c := range d.Commits.Nodes {
		if c := c.Commit; c.At.After(since) && !c.At.After(r.asked) {
			p.Items = append(p.Items, attempt.Item{Text: fmt.Sprintf("%.10s %s, by %s, %s", c.OID, render.Line(c.Headline, 200), render.Line(c.Author.Name, 100), c.At.UTC().Format("2006-01-02 15:04 UTC"))})
		}
	}
	p.Of = len(p.Items) + max(0, d.Commits.Total-len(d.Commits.Nodes))
	return p
}

// reference is how a text names another issue or pull request of its repository.
var reference = regexp.MustCompile(`(?:^|[\s(\[,;:])#([1-9]\d{0,8})\b`)

func references(texts []string) (numbers []int) {
	for _, t := range texts {
		for _, m := range reference.FindAllStringSubmatch(feedback.Visible(t), -1) {
			n, _ := strconv.Atoi(m[1]) // digits
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// linked are the heads of what is named, one level deep.
func (r *reader) linked(ctx context.Context, numbers, not []int) attempt.Part {
	p := attempt.Part{Name: "linked issues and pull requests", Share: 4}
	slices.Sort(numbers)
	numbers = slices.DeleteFunc(slices.Compact(numbers), func(n int) bool { return slices.Contains(not, n) })
	if len(numbers) == 0 || r.pub.Config.Context.Linked == 0 {
		return p
	}
	p.Of = len(numbers)
	if r.err != nil {
		p.Notes = []string{unread}
		return p
	}
	all, err := r.pub.Forge.Discussions.Linked(ctx, r.pub.repo(), numbers)
	if err != nil {
		r.err, p.Notes = err, []string{unread}
		return p
	}
	for _, n := range numbers {
		d, ok := all[n]
		if !ok {
			continue
		}
		if d.At.After(r.asked) || !d.Edited.Before(r.asked) {
			p.Notes = append(p.Notes, fmt.Sprintf("#%d left out since it was written or edited after the order", n))
			continue
		}
		state := "open"
		if d.Closed {
			state = "closed"
		}
		role := r.role(ctx, forge.Said{By: d.By, Association: d.Association})
		p.Items = append(p.Items, attempt.Said(d.By.Account(), role, d.By.Bot(), d.At, fmt.Sprintf("#%d, %s", n, state), d.Title+"\n\n"+d.Body))
	}
	return p
}
