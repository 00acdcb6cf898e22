package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// print writes the inspection for people. Texts of the agent are quoted, so
// that nothing in them can act on the terminal.
func (v inspection) print(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) { fmt.Fprintf(t, name+"\t"+format+"\n", args...) }
	row("ending", "%s (%s)", v.Ending, v.CLI)
	for _, reason := range v.Reasons {
		row("", "%s", plainText(reason))
	}
	if l := v.Limit; l != nil {
		until := "reset unknown"
		if l.ResetsAt != nil {
			until = fmt.Sprintf("until %s (%s)", l.ResetsAt.Format(time.RFC3339), l.Source)
		}
		row("limit", "%s, %s", l.Kind, until)
	}
	edits := fmt.Sprintf("%d in %d files", v.Edits.Operations, v.Edits.Files)
	if v.Edits.MaxRepeat > 1 {
		edits += fmt.Sprintf(", %d of them on %s", v.Edits.MaxRepeat, plainText(v.Edits.MaxRepeatPath))
	}
	row("edits", "%s", edits)
	severity := string(v.Severity.Class)
	if v.Severity.Class != policy.None {
		severity += fmt.Sprintf(", cooldown %s, grade %g", time.Duration(v.Severity.CooldownSeconds)*time.Second, v.Severity.Grade)
	}
	row("severity", "%s", severity)
	for _, reason := range v.Severity.Reasons {
		row("", "%s", plainText(reason))
	}
	cost := ""
	if v.CostUSD != nil {
		cost = fmt.Sprintf(", %.4f USD", *v.CostUSD)
	}
	row("tokens", "%d in (%d cached), %d out%s", v.Tokens.Input, v.Tokens.CachedInput, v.Tokens.Output, cost)
	row("calls", "%d in %d turns", v.ToolCalls, v.Turns)
	row("mentions", "%d of a limit, ignored", v.Mentions)
	row("fingerprint", "%s", v.Fingerprint)
	if v.SessionID != "" {
		row("session", "%s", plainText(v.SessionID))
	}
	if v.FinalMessage != "" {
		row("message", "%s", plainText(v.FinalMessage))
	}
	return t.Flush()
}

// plainText makes one harmless line of a text, at most 300 bytes of it.
func plainText(s string) string {
	if len(s) > 300 {
		s = strings.ToValidUTF8(s[:300], "") + " …"
	}
	q := strconv.Quote(s)
	return strings.ReplaceAll(q[1:len(q)-1], `\"`, `"`)
}
