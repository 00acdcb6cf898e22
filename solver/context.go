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

// reader collects an attempt's context as of the time of the request.
type reader struct {
	pub      *publisher
	asked    time.Time
	known    map[thread.Target]bool   // parts of the task itself
	agent    map[thread.Target]bool   // written by an agent, under any name
	texts    map[thread.Target]string // the texts as they were judged
	roles    map[string]string        // by login, for users looked up so far
	asks     int                      // remaining look-ups
	err      error                    // first failed request to GitHub; optional requests are then skipped
	pictured map[string]attempt.Item
}

// maxAsked limits an attempt's permission look-ups. The newest posts go first.
const maxAsked = 5

const unread = "left out, since GitHub did not show them"

// discussion returns an attempt's context in addition to its task (work). The parts' notes name what is missing.
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

func concernsThread(err error) bool {
	var moved *forge.Moved
	var limited *forge.RateLimited
	if errors.As(err, &moved) || errors.As(err, &limited) {
		return true
	}
	return isAny(err, forge.ErrUninstalled, forge.ErrUnauthorized, thread.ErrLeaseLost)
}

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
		asked := w.Made()
		if w.Standing { // the watch asked
			asked = w.At
		}
		r.asked = policy.Later(r.asked, asked)
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
		r.accepted(f.Feedback)
	}
	for _, c := range p.state.Controls {
		r.accepted(c)
	}
	return r
}

// accepted records that the author of accepted feedback may write.
func (r *reader) accepted(f thread.Feedback) {
	if feedback.Typed(f.By, f.Source, "") {
		r.roles[f.By.Login] = "writer"
	}
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
		comments := r.discussion(ctx, "issue_comment", "comments"+of, d.Comments.Nodes, d.Comments.Total)
		reviews := r.discussion(ctx, "review", "reviews"+of, slices.DeleteFunc(d.Reviews.Nodes, func(s forge.Post) bool { return strings.TrimSpace(s.Text) == "" }), d.Reviews.Total)
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
	// Linked items come before the discussion, which may have any size.
	return append([]attempt.Part{r.linked(ctx, append(linked, references(texts)...), numbers), shown}, parts...)
}

func (r *reader) discussion(ctx context.Context, kind, name string, all []forge.Post, total int) attempt.Part {
	p := attempt.Part{Name: name, Of: total, Share: 2}
	left := map[string]int{}
	for _, s := range slices.Backward(all) {
		of := thread.Target{Kind: kind, ID: int64(s.ID)}
		switch {
		case s.By.Account() == r.pub.app.BotLogin:
			p.Of--
		case r.known[of]:
			p.Of--
			r.item(ctx, s) // its pictures are not part of the task
		case r.agent[of]:
			left["written by an agent"]++
		case s.At.After(r.asked):
			left["written after the request"]++
		case !s.Edited.Before(r.asked): // GitHub's times are whole seconds
			left["edited after the request"]++
		case s.Hidden:
			left["hidden by users"]++
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

func notes(left map[string]int) (out []string) {
	for _, why := range slices.Sorted(maps.Keys(left)) {
		out = append(out, fmt.Sprintf("%d left out that were %s", left[why], why))
	}
	return out
}

func (r *reader) item(ctx context.Context, s forge.Post) attempt.Item {
	item := attempt.NewItem(s.By.Account(), r.role(ctx, s), s.By.Bot(), s.At, "", s.Text)
	if shows.MatchString(s.Text) {
		r.pictured[s.Node] = item
	}
	return item
}

var shows = regexp.MustCompile(`!\[|(?i)<img\b`)

// pictures returns users' attachments. The CLI receives only attachments of users with write permission.
func (r *reader) pictures(ctx context.Context, d forge.Discussion) attempt.Part {
	p := attempt.Part{Name: "pictures", Share: 8, Files: map[string]string{}}
	if shows.MatchString(d.Body) {
		r.pictured[d.Node] = attempt.NewItem(d.By.Account(), r.role(ctx, forge.Post{By: d.By, Association: d.Association}), d.By.Bot(), d.At, "", "")
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
		item.Where, item.Text = name, "attached to an earlier version"
		p.Items, p.Files[name] = append(p.Items, item), string(picture.Data)
	}
	p.Of = len(all) + left
	if left > 0 {
		p.Notes = []string{fmt.Sprintf("%d left out that GitHub does not keep, or that are too large, too many or of another format than png, jpeg and gif", left)}
	}
	return p
}

func (r *reader) role(ctx context.Context, s forge.Post) string {
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

func mayWrite(s forge.Post) bool {
	if s.By.Account() == "" || s.By.Bot() {
		return false
	}
	return slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, s.Association)
}

func (r *reader) mayAsk() bool { return r.asks > 0 && r.err == nil }

func (r *reader) changedLater(s forge.Post) bool {
	return s.Hidden || s.At.After(r.asked) || !s.Edited.Before(r.asked)
}

// hunkLines limits the diff lines before a remark.
const hunkLines = 12

// remarks returns unresolved review threads with their lines.
func (r *reader) remarks(ctx context.Context, name string, d forge.Discussion) attempt.Part {
	p := attempt.Part{Name: name, Of: d.Threads.Total, Share: 2}
	left := map[string]int{}
	for _, t := range slices.Backward(d.Threads.Nodes) {
		if t.Resolved {
			left["resolved"]++
			continue
		}
		var lines []string
		var first forge.Post
		for _, s := range t.Comments.Nodes {
			if r.changedLater(s) {
				continue
			}
			if len(lines) == 0 {
				first = s
			}
			item := r.item(ctx, s)
			if r.known[thread.Target{Kind: "review_comment", ID: int64(s.ID)}] {
				item.Text = "(shown above)"
			}
			lines = append(lines, item.Render())
		}
		if len(lines) == 0 {
			left["written or edited after the request"]++
			continue
		}
		if !t.Outdated {
			p.Open = append(p.Open, int64(first.ID))
		}
		hunk := strings.Split(first.Hunk, "\n")
		hunk = hunk[max(0, len(hunk)-hunkLines):]
		item := attempt.Item{Where: fmt.Sprintf("remark %d, %s%s", first.ID, onLines(t, first.Text), onCommit(first.On.SHA)), At: first.At,
			Text: "| " + strings.Join(hunk, "\n| ") + "\n" + strings.Join(lines, "")}
		if t.Side != "LEFT" { // the left side shows the commit before the change
			item.Lines = attempt.Lines{Commit: first.On.SHA, Path: t.Path, First: cmp.Or(t.WasStart, t.Was), Last: t.Was}
		}
		p.Items = append(p.Items, item)
	}
	slices.Reverse(p.Items)
	slices.Reverse(p.Open)
	p.Notes = notes(left)
	return p
}

func files(d forge.Discussion, of string) attempt.Part {
	p := attempt.Part{Name: "changed files" + of, Of: d.Files.Total, Share: 8}
	for _, f := range d.Files.Nodes {
		p.Items = append(p.Items, attempt.Item{Text: fmt.Sprintf("%s +%d −%d %s", render.Line(f.Path, 300), f.Additions, f.Deletions, strings.ToLower(f.Change))})
	}
	return p
}

// commits returns a pull request's commits since the last attempt, or all before the first attempt.
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

var reference = regexp.MustCompile(`(?:^|[\s(\[,;:])#([1-9]\d{0,8})\b`)

func references(texts []string) (numbers []int) {
	for _, t := range texts {
		for _, m := range reference.FindAllStringSubmatch(feedback.Visible(t), -1) {
			n, _ := strconv.Atoi(m[1])
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// linked returns the titles and descriptions of mentioned issues and pull requests.
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
			p.Notes = append(p.Notes, fmt.Sprintf("#%d left out since it was written or edited after the request", n))
			continue
		}
		state := "open"
		if d.Closed {
			state = "closed"
		}
		role := r.role(ctx, forge.Post{By: d.By, Association: d.Association})
		p.Items = append(p.Items, attempt.NewItem(d.By.Account(), role, d.By.Bot(), d.At, fmt.Sprintf("#%d, %s", n, state), d.Title+"\n\n"+d.Body))
	}
	return p
}
