package attempt

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// question is what the judge gets on standard input, as JSON.
type question struct {
	Thread  string            `json:"thread"`
	Attempt int               `json:"attempt"`
	Task    string            `json:"task"`
	Diff    string            `json:"diff"`
	Outcome string            `json:"outcome"`
	Verify  []policy.Verified `json:"verify"`
	Final   string            `json:"final_message"`
	// Tree is where the judge can read the files, which the agent wrote.
	Tree string `json:"tree"`
}

// Judge lets the operator's judge grade the work of an attempt, in the
// sandbox. It is nil where there is no judge or nothing to grade.
func (c *checkout) Judge(ctx context.Context) (*policy.Judged, error) {
	l := c.Ground.Effective.Policy.Learning
	if len(l.Judge) == 0 || c.Receipt.Ending != policy.Completed || !policy.Progress(c.Receipt.StartTree, c.Receipt.EndTree) {
		return nil, nil
	}
	diff, _, err := c.ws.Diff(ctx, c.Receipt.StartTree, c.Receipt.EndTree, maxDiff)
	if err != nil {
		return nil, err
	}
	in, err := json.Marshal(question{Thread: c.Thread.String(), Attempt: c.N, Task: c.Prompt, Diff: diff, Outcome: string(c.Receipt.Outcome), Verify: c.Receipt.Verify, Final: c.Receipt.Final, Tree: c.ws.Dir})
	if err != nil {
		return nil, err
	}
	report, printed, err := c.inSandbox(ctx, c.ws, program{argv: l.Judge, env: l.JudgeEnv, stdin: in, most: l.JudgeTimeout, apart: true})
	if err != nil {
		return nil, fmt.Errorf("judge: %w", err)
	}
	said := printed.String()
	name := filepath.Base(l.Judge[0])
	switch {
	case report.Killed:
		return &policy.Judged{Error: fmt.Sprintf("%s did not answer within %s", name, l.JudgeTimeout)}, nil
	case report.Exit.Code != 0 || report.Exit.Signal != "":
		return &policy.Judged{Error: fmt.Sprintf("%s ended with exit code %d: %s", name, report.Exit.Code, clip(oneLine(report.Stderr+" "+said), 300))}, nil
	}
	return verdict(name, said), nil
}

// verdict reads the judge's answer: the last line that is a JSON object with a
// grade.
func verdict(name, said string) *policy.Judged {
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
			return &policy.Judged{Error: clip(oneLine(answer.Error), 300)}
		}
		if answer.Grade != nil {
			return &policy.Judged{Grade: *answer.Grade, Detail: clip(oneLine(answer.Reason), 300)}
		}
	}
	return &policy.Judged{Error: fmt.Sprintf(`%s printed no line such as {"grade": 0.7, "reason": "…"}`, name)}
}
