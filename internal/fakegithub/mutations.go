package fakegithub

import (
	"fmt"
	"strings"

	graphql "github.com/graph-gophers/graphql-go"
)

type graphReady struct {
	ClientMutationID *string
	PullRequest      *graphThread
}

// MarkPullRequestReadyForReview needs write permission for pull requests.
func (q *graphQuery) MarkPullRequestReadyForReview(args struct {
	Input struct {
		ClientMutationID *string
		PullRequestID    graphql.ID
	}
}) (*graphReady, error) {
	for _, r := range q.world.repos {
		for _, t := range r.threads {
			if t.pull == nil || nodeID("PullRequest", t.pull.id) != string(args.Input.PullRequestID) || !q.call.sees(r) {
				continue
			}
			if q.call.repo = r; !q.call.has("pull_requests:write") {
				return nil, denied("Resource not accessible by integration")
			}
			if t.pull.draft {
				t.pull.draft = false
				q.world.emit("pull_request", r, q.call.who.account(), obj{"action": "ready_for_review", "number": t.number, "pull_request": q.world.renderPull(r, t)})
			}
			return &graphReady{args.Input.ClientMutationID, (&graphRepo{r.fullName(), r, q.call, q.world}).thread(t)}, nil
		}
	}
	return nil, missing(fmt.Sprintf("Could not resolve to a node with the global id of '%s'.", args.Input.PullRequestID))
}

type graphResolved struct {
	ClientMutationID *string
	Thread           *graphReview
}

// ResolveReviewThread needs write permission for contents, as GitHub requires of Apps.
func (q *graphQuery) ResolveReviewThread(args struct {
	Input struct {
		ClientMutationID *string
		ThreadID         graphql.ID
	}
}) (*graphResolved, error) {
	for _, r := range q.world.repos {
		for _, t := range r.threads {
			if t.pull == nil || !q.call.sees(r) {
				continue
			}
			for _, c := range t.pull.comments {
				if c.answers != 0 || graphql.ID(nodeID("PullRequestReviewThread", c.id)) != args.Input.ThreadID {
					continue
				}
				if q.call.repo = r; !q.call.has("contents:write") {
					return nil, denied("Resource not accessible by integration")
				}
				c.resolved = true
				return &graphResolved{args.Input.ClientMutationID, (&graphRepo{r.fullName(), r, q.call, q.world}).thread(t).review(c)}, nil
			}
		}
	}
	return nil, missing(fmt.Sprintf("Could not resolve to a node with the global id of '%s'.", args.Input.ThreadID))
}

type graphReaction struct {
	ID      graphql.ID
	Content string
}

type graphReacted struct {
	ClientMutationID *string
	Reaction         *graphReaction
}

// AddReaction serves reviews, which have no REST route. It needs write permission for pull requests.
func (q *graphQuery) AddReaction(args struct {
	Input struct {
		ClientMutationID *string
		Content          string
		SubjectID        graphql.ID
	}
}) (*graphReacted, error) {
	for _, r := range q.world.repos {
		for _, t := range r.threads {
			if t.pull == nil || !q.call.sees(r) {
				continue
			}
			for _, v := range t.pull.reviews {
				if nodeID("PullRequestReview", v.id) != string(args.Input.SubjectID) {
					continue
				}
				if q.call.repo = r; !q.call.has("pull_requests:write") {
					return nil, denied("Resource not accessible by integration")
				}
				made, _ := q.world.react(&v.reactions, q.call.who.account(), strings.ToLower(args.Input.Content))
				return &graphReacted{args.Input.ClientMutationID, &graphReaction{graphql.ID(nodeID("Reaction", made.id)), args.Input.Content}}, nil
			}
		}
	}
	return nil, missing(fmt.Sprintf("Could not resolve to a node with the global id of '%s'.", args.Input.SubjectID))
}

// denied is GitHub's error if a token may see a node but not change it.
type denied string

func (d denied) Error() string              { return string(d) }
func (d denied) Extensions() map[string]any { return map[string]any{"type": "FORBIDDEN"} }
