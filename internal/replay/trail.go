package replay

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// trailReader reads the exported log of a thread, one event a line.
type trailReader struct {
	rec *recorder
	n   int
	seq int64
}

// line takes one event. Acts and questions have no part in decisions.
func (t *trailReader) line(line []byte) error {
	t.n++
	var e thread.Event
	if err := json.Unmarshal(line, &e); err != nil {
		return fmt.Errorf("line %d: not an event of a trail: %w", t.n, err)
	}
	if e.Seq <= t.seq {
		return fmt.Errorf("line %d: event %d comes after event %d: give one thread's log, in order", t.n, e.Seq, t.seq)
	}
	t.seq = e.Seq
	switch e.Kind {
	case thread.KindActStarted, thread.KindActDone, thread.KindQuestion:
		return nil
	case thread.KindAttemptStarted:
		t.rec.attempts++
	}
	t.rec.entries = append(t.rec.entries, entry{Event: e})
	return nil
}

func (t *trailReader) close() error { return nil }

// cyclesReader reads rows of an already parsed wrapper log, one run of the agent each.
type cyclesReader struct {
	rec    *recorder
	spool  *spool
	n      int
	source string
}

// cycleRow is one such row.
type cycleRow struct {
	Source    string    `json:"source"`
	Start     time.Time `json:"t_start"`
	End       time.Time `json:"t_end"`
	Thread    string    `json:"thread"`
	Errors    []string  `json:"errors"`
	Failed    *string   `json:"turn_failed"`
	Items     int       `json:"items"`
	Changes   int       `json:"file_changes"`
	Completed bool      `json:"tool_completed"`
	Feedback  []string  `json:"feedback"`
	Restart   time.Time `json:"restart"`
}

func (c *cyclesReader) line(line []byte) error {
	c.n++
	var row cycleRow
	if err := json.Unmarshal(line, &row); err != nil {
		return fmt.Errorf("line %d: not a row of cycles: %w", c.n, err)
	}
	if c.n > 1 && row.Source != c.source {
		return fmt.Errorf("line %d: rows of %q after rows of %q: give the rows of one source", c.n, text.Line(row.Source, 40), text.Line(c.source, 40))
	}
	c.source = row.Source
	for _, event := range row.stream() {
		b, err := json.Marshal(event)
		if err != nil {
			return err
		}
		if err := c.spool.line(b); err != nil {
			return err
		}
	}
	end := row.End
	if end.IsZero() {
		end = row.Start
	}
	report, err := c.spool.inspect(agent.StreamCodex, end)
	if err != nil {
		return err
	}
	// A row tells numbers, not paths.
	report.Edits = policy.Edits{Operations: row.Changes, Files: min(row.Changes, 1)}
	c.rec.note(estimated)
	if err := c.rec.attempt(execution{backend: "codex", started: row.Start, ended: end, report: report}); err != nil {
		return err
	}
	at := row.Restart
	if at.IsZero() {
		at = end
	}
	for _, text := range row.Feedback {
		if err := c.rec.remark(at, true, text); err != nil {
			return err
		}
	}
	return nil
}

func (c *cyclesReader) close() error { return nil }

// stream is what codex printed, as far as the row tells.
func (c cycleRow) stream() []map[string]any {
	out := []map[string]any{{"type": "thread.started", "thread_id": c.Thread}, {"type": "turn.started"}}
	for _, e := range c.Errors {
		out = append(out, map[string]any{"type": "error", "message": e})
	}
	if c.Items > 0 {
		out = append(out, map[string]any{"type": "item.completed", "item": map[string]any{"id": "rows", "type": "agent_message", "text": "…"}})
	}
	switch {
	case c.Failed != nil:
		out = append(out, map[string]any{"type": "turn.failed", "error": map[string]any{"message": *c.Failed}})
	case c.Items > 0 && c.Completed:
		out = append(out, map[string]any{"type": "turn.completed"})
	}
	return out
}
