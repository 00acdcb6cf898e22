package attempt

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawlbot/pawl/internal/agent"
)

// runTwice runs the agent. If the agent was given a session and did nothing, the CLI may have refused the session, in
// whatever words. The agent then runs once more without the session. Its prompt is complete in either case.
func (c *checkout) runTwice(run context.Context, cancel context.CancelCauseFunc) (report agent.Report, cause, err error) {
	report, cause, err = c.runIn(run, cancel)
	over := cause != nil || err != nil
	if over || !c.refusedSession(run, report) {
		return report, cause, err
	}
	said := cmp.Or(oneLine(report.Failure), oneLine(tail(report.Stderr, maxDetail)), string(report.Ending))
	why := fmt.Sprintf("the agent did nothing in session %s (%s) and ran once more without the session", c.Session, agent.Shorten(said, maxDetail))
	c.Log.Warn().Str("session", c.Session).Str("said", said).Msg("the agent did nothing in its session; running it once more without the session")
	c.Session = ""
	report, cause, err = c.runIn(run, cancel)
	report.Reasons = append([]string{why}, report.Reasons...)
	return report, cause, err
}

// refusedSession reports whether a session was given, and neither the agent's output nor the files show any work.
func (c *checkout) refusedSession(ctx context.Context, report agent.Report) bool {
	if c.Session == "" || c.monitor.unrestored != nil {
		return false
	}
	if !report.Mute || report.Tokens.Output > 0 {
		return false
	}
	return report.Ending.MayRefuseSession() && !c.changedFiles(ctx)
}

// changedFiles reports whether the files differ from those at the agent's start. Files that cannot be read have changed.
func (c *checkout) changedFiles(ctx context.Context) bool {
	snap, err := c.ws.Snapshot(ctx)
	if err != nil || len(snap.Left) > 0 {
		return true
	}
	deleted, edited, added, err := c.ws.Paths(ctx, cmp.Or(c.checkout().Files, c.ws.StartTree), snap.Tree)
	return err != nil || len(deleted)+len(edited)+len(added) > 0
}
