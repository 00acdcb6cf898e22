package solver

import (
	"fmt"
	"strings"
)

// Label on an issue means solve.
const Label = "pawl"

// BranchPrefix begins the name of the branch that Pawl works on for an issue;
// its number follows.
const BranchPrefix = "pawl/issue-"

// Keys of acts. A key happens once.
const actPull = "pull_request"

func pushKey(branch, sha string) string { return "push:" + branch + ":" + sha }
func checkKey(name, sha string) string  { return "check:" + name + ":" + sha }
func answerKey(seq int64) string        { return fmt.Sprintf("comment:%d", seq) }
func reactKey(seq int64) string         { return fmt.Sprintf("reaction:%d", seq) }
func gradeKey(n int) string             { return fmt.Sprintf("grade:%d", n) }

const actStatus = "comment:status"

// marker begins every HTML comment that Pawl leaves in its texts.
const marker = "<!-- pawl:"

// Marked reports whether a text carries a marker of Pawl.
func Marked(text string) bool { return strings.Contains(text, marker) }

// branch is the branch that Pawl works on: its own for an issue, the head of a
// pull request.
func (s State) branch(t Thread) string {
	if s.Snapshot.Pull {
		return s.Snapshot.HeadRef
	}
	return fmt.Sprintf("%s%d", BranchPrefix, t.Number)
}
