package thread

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Label on an issue means solve.
const Label = "pawl"

// BranchPrefix begins the name of the branch that Pawl works on for an issue;
// its number follows.
const BranchPrefix = "pawl/issue-"

// Keys of acts. A key happens once.
const ActPull = "pull_request"

func PushKey(branch, sha string) string { return "push:" + branch + ":" + sha }
func CheckKey(name, sha string) string  { return "check:" + name + ":" + sha }
func AnswerKey(seq int64) string        { return fmt.Sprint(commentKey, seq) }
func ReactKey(seq int64) string         { return fmt.Sprintf("reaction:%d", seq) }
func GradeKey(n int) string             { return fmt.Sprintf("grade:%d", n) }

// commentKey begins the keys of comments.
const commentKey = "comment:"

const ActStatus = commentKey + "status"

// marker begins every HTML comment that Pawl leaves in its texts.
const marker = "<!-- pawl:"

// Marked reports whether a text carries a marker of Pawl.
func Marked(text string) bool { return strings.Contains(text, marker) }

// Hash names a rendering, so that an unchanged one is not sent again.
func Hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
