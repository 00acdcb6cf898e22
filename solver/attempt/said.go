package attempt

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
)

// answer ends an attempt that was to answer or to plan: nothing is verified, and nothing leaves but what it says.
func answer(ctx context.Context, a *Attempt) error {
	if err := a.executor.Commit(ctx); err != nil {
		return a.broken(ctx, err)
	}
	a.conclude()
	return nil
}

// throwAway says what an attempt changed that was to change nothing. None of it reaches anything.
func throwAway(ctx context.Context, c *checkout, snap git.Snapshot, err error) error {
	const why = " (thrown away)"
	if errors.Is(err, git.ErrUnsafe) || errors.Is(err, git.ErrTooLarge) {
		c.Receipt.LeftOut = append(c.Receipt.LeftOut, "files that cannot be used"+why)
		return nil
	}
	if err != nil {
		return err
	}
	deleted, edited, added, err := c.ws.Paths(ctx, c.ws.StartTree, snap.Tree)
	all := slices.Concat(deleted, edited, added)
	for _, path := range all[:min(len(all), maxThrown)] {
		c.Receipt.LeftOut = append(c.Receipt.LeftOut, path+why)
	}
	if more := len(all) - maxThrown; more > 0 {
		c.Receipt.LeftOut = append(c.Receipt.LeftOut, policy.Plural(more, "more file")+why)
	}
	return err
}

// maxThrown is how many of those files a receipt names.
const maxThrown = 20

// printed is the end of what an agent printed.
func printed(transcript string) (string, error) {
	out, err := os.Open(transcript)
	if err != nil {
		return "", err
	}
	defer out.Close()
	end := text.End{Max: maxAnswer}
	_, err = io.Copy(&end, out)
	return end.String(), err
}

// said takes what the agent said last into the receipt: of an answer or a plan the whole, which is what was asked for.
func said(r *policy.Receipt, message string, purpose policy.Purpose) {
	r.Final, r.Declined, r.Question, r.Title, r.NotDone, r.Remarks = text.Excerpt(message, maxAnswer), "", "", "", nil, nil
	if purpose != policy.ToChange {
		return
	}
	answer := policy.ReadAnswer(message)
	r.Final, r.Declined, r.Question, r.Title = tail(answer.Text, maxOutput), clip(answer.Declined, maxDetail), clip(answer.Question, maxDetail), clip(answer.Title, maxTitle)
	for _, words := range answer.LeftOut {
		r.NotDone = append(r.NotDone, clip(words, maxDetail))
	}
	for _, a := range answer.Remarks {
		a.Words = clip(a.Words, maxDetail)
		r.Remarks = append(r.Remarks, a)
	}
}
