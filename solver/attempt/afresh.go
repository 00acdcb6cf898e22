package attempt

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pawlbot/pawl/internal/agent"
)

// runTwice runs the agent. If an agent with a session did nothing, the CLI may have refused the session; CLIs word a
// refusal differently. The agent then runs once more without a session, with the complete prompt.
func (c *checkout) runTwice(run context.Context, cancel context.CancelCauseFunc) (report agent.Report, cause, err error) {
	report, cause, err = c.runIn(run, cancel)
	over := cause != nil || err != nil
	if over || !c.refusedSession(run, report) {
		return report, cause, err
	}
	message := cmp.Or(oneLine(report.Failure), oneLine(tail(report.Stderr, maxDetail)), string(report.Ending))
	why := fmt.Sprintf("the agent did nothing in session %s (%s) and ran once more without the session", c.Session, agent.Shorten(message, maxDetail))
	c.Log.Warn().Str("session", c.Session).Str("said", message).Msg("the agent did nothing in its session; running it once more without the session")
	c.Session = ""
	report, cause, err = c.runIn(run, cancel)
	report.Reasons = append([]string{why}, report.Reasons...)
	return report, cause, err
}

// refusedSession reports whether the CLI may have refused a session: neither its output nor the files show any work.
func (c *checkout) refusedSession(ctx context.Context, report agent.Report) bool {
	if c.Session == "" || c.monitor.unrestored != nil {
		return false
	}
	if !report.Mute || report.Tokens.Output > 0 {
		return false
	}
	return report.Ending.MayRefuseSession() && !c.changedFiles(ctx)
}

// changedFiles reports whether files changed since the agent's last start. Unreadable files count as changed.
func (c *checkout) changedFiles(ctx context.Context) bool {
	snap, err := c.ws.Snapshot(ctx)
	if err != nil || len(snap.Left) > 0 {
		return true
	}
	deleted, edited, added, err := c.ws.Paths(ctx, cmp.Or(c.steering.tree, c.checkout().Files, c.ws.StartTree), snap.Tree)
	return err != nil || len(deleted)+len(edited)+len(added) > 0
}
