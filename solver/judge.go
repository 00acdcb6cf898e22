package solver

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// question is what the judge gets on standard input, as JSON.
type question struct {
	Thread  string     `json:"thread"`
	Attempt int        `json:"attempt"`
	Task    string     `json:"task"`
	Diff    string     `json:"diff"`
	Outcome string     `json:"outcome"`
	Verify  []Verified `json:"verify"`
	Final   string     `json:"final_message"`
	// Tree is where the judge can read the files, which the agent wrote.
	Tree string `json:"tree"`
}

// askJudge lets the operator's judge grade the work of an attempt, in the
// sandbox. It is nil where there is no judge or nothing to grade.
func (s *step) askJudge(ctx context.Context, a Started, p *prepared, ws *git.Workspace, task string, r Ended) (*Judged, error) {
	l := p.effective.Policy.Learning
	if len(l.Judge) == 0 || r.Ending != policy.Completed || !policy.Progress(r.StartTree, r.EndTree) {
		return nil, nil
	}
	diff, _, err := ws.Diff(ctx, r.StartTree, r.EndTree, maxDiff)
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(question{Thread: s.thread.String(), Attempt: a.N, Task: task, Diff: diff, Outcome: string(r.Outcome), Verify: r.Verify, Final: r.Final, Tree: ws.Dir})
	if err != nil {
		return nil, err
	}
	report, printed, err := s.inSandbox(ctx, a, ws, program{argv: l.Judge, env: l.JudgeEnv, stdin: in, most: l.JudgeTimeout, apart: true})
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	said := printed.String()
	name := filepath.Base(l.Judge[0])
	switch {
	case report.Killed:
		return &Judged{Error: fmt.Sprintf("%s did not answer within %s", name, l.JudgeTimeout)}, nil
	case report.Exit.Code != 0 || report.Exit.Signal != "":
		return &Judged{Error: fmt.Sprintf("%s ended with exit code %d: %s", name, report.Exit.Code, clip(oneLine(report.Stderr+" "+said), 300))}, nil
	}
	return verdict(name, said), nil
}

// verdict reads the judge's answer: the last line that is a JSON object with a
// grade.
func verdict(name, said string) *Judged {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		var answer struct {
			Grade  *float64 `json:"grade"`
			Reason string   `json:"reason"`
			Error  string   `json:"error"`
		}
		if json.Unmarshal([]byte(lines[i]), &answer) != nil {
			continue
		}
		if answer.Error != "" {
			return &Judged{Error: clip(oneLine(answer.Error), 300)}
		}
		if answer.Grade != nil {
			return &Judged{Grade: *answer.Grade, Detail: clip(oneLine(answer.Reason), 300)}
		}
	}
	return &Judged{Error: fmt.Sprintf(`%s printed no line such as {"grade": 0.7, "reason": "…"}`, name)}
}
