package testrig

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	_ "modernc.org/sqlite"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
)

// StatusComment returns the body of Pawl's status comment on a thread, or an empty string.
func (r *Rig) StatusComment(n int) string {
	for _, c := range r.World.Comments(Repo, n) {
		if strings.Contains(c.Body, checkrun.StatusMarker(ThreadName(n))) {
			return c.Body
		}
	}
	return ""
}

func (r *Rig) Head(pull int) string {
	for _, p := range r.World.Pulls(Repo) {
		if p.Number == pull {
			return p.Pull.HeadSHA
		}
	}
	return ""
}

// Writes posts a comment on an issue or pull request and returns the comment's id.
func (r *Rig) Writes(n int, who, words string) int64 {
	r.T.Helper()
	id, err := r.World.Comment(Repo, n, who, words)
	r.Must(err)
	return id
}

// Push lets the writer push a file to a branch and returns the commit.
func (r *Rig) Push(branch, message, file, text string) string {
	r.T.Helper()
	sha, err := r.World.PushCommit(r.T.Context(), Repo, Writer, fakegithub.Commit{Branch: branch, Message: message, Files: map[string]string{file: text}})
	r.Must(err)
	return sha
}

// NewestComment returns the body of the newest comment on an issue or pull request.
func (r *Rig) NewestComment(number int) string {
	all := r.World.Comments(Repo, number)
	return all[len(all)-1].Body
}

func (r *Rig) Git(args ...string) string {
	r.T.Helper()
	out, err := r.World.Git(r.T.Context(), Repo, args...)
	r.Must(err)
	return strings.TrimSpace(out)
}

// PlainAgent writes its prompt to prompt.<n>, adds a line to a.txt and reports it.
const PlainAgent = `n=$(wc -l < "$CTRL/calls" | tr -d ' ')
cat > "$CTRL/prompt.$n"
echo "line $n" >> a.txt
echo "a.txt has the line number $n now"
`

// GatedAgent is PlainAgent, but waits at the gate before it ends; see Gate.
const GatedAgent = PlainAgent + `if [ -p "$CTRL/gate" ]; then read opened < "$CTRL/gate"; fi
`

// Gate makes gated agents wait until it is opened.
func (r *Rig) Gate() {
	r.T.Helper()
	r.Must(syscall.Mkfifo(filepath.Join(r.Ctrl(), "gate"), 0o600))
}

// Open removes the gate and lets the waiting agent continue.
func (r *Rig) Open() {
	r.T.Helper()
	path := filepath.Join(r.Ctrl(), "gate")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	r.Must(err)
	defer f.Close()
	r.Must(os.Remove(path))
	_, err = f.WriteString("opened\n")
	r.Must(err)
}

func (r *Rig) Prompt(n string) string {
	r.T.Helper()
	b, err := os.ReadFile(filepath.Join(r.Ctrl(), "prompt."+n))
	r.Must(err)
	return string(b)
}

// Solved solves an issue with one attempt and returns the numbers of the issue and of its pull request.
func (r *Rig) Solved() (issue, pull int) {
	r.T.Helper()
	issue = r.Solve("A second line", "Please add a second line to a.txt.")
	if s := r.Over(ThreadName(issue)); s.State != "done" {
		r.T.Fatalf("%s is %s (%s %v), want done", s.Thread, s.State, s.Rule, s.Reasons)
	}
	r.Settle()
	for _, p := range r.World.Pulls(Repo) {
		pull = p.Number
	}
	return issue, pull
}

// Commenting returns a function that comments on a thread.
func (r *Rig) Commenting(on int, who, text string) func() error {
	return func() error {
		_, err := r.World.Comment(Repo, on, who, text)
		return err
	}
}

// Answers returns Pawl's comments that answer questions on a thread.
func (r *Rig) Answers(n int) []string {
	var out []string
	for _, c := range r.World.Comments(Repo, n) {
		if c.Author == "pawl[bot]" && strings.Contains(c.Body, "<!-- pawl:answer") {
			out = append(out, c.Body)
		}
	}
	return out
}

// Signature returns the hexadecimal HMAC of a webhook's body.
func Signature(algorithm func() hash.Hash, body []byte) string {
	mac := hmac.New(algorithm, []byte(Secret))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// Hook sends a webhook like GitHub's, by default a ping. header overrides its headers; an empty value removes a header.
func (r *Rig) Hook(body []byte, header map[string]string) (status int, answer string) {
	r.T.Helper()
	h := map[string]string{
		"Content-Type": "application/json", "X-GitHub-Event": "ping", "X-GitHub-Delivery": "11111111-2222-4333-8444-555555555555",
		"X-Hub-Signature-256": "sha256=" + Signature(sha256.New, body),
	}
	for k, v := range header {
		h[k] = v
	}
	req, err := http.NewRequestWithContext(r.T.Context(), http.MethodPost, r.URL("/api/github/hook"), bytes.NewReader(body))
	r.Must(err)
	for k, v := range h {
		if v != "" {
			req.Header.Set(k, v)
		}
	}
	resp, err := http.DefaultClient.Do(req)
	r.Must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	r.Must(err)
	return resp.StatusCode, string(b)
}

// Layer returns the environment layer that a thread's last attempt started with.
func (r *Rig) Layer(n int) policy.Layer {
	all := r.State(n).Attempts
	return all[len(all)-1].Receipt.Layer
}

func (r *Rig) PullOf(issue int) int {
	for _, p := range r.World.Pulls(Repo) {
		if p.Pull.Head == fmt.Sprintf("pawl/issue-%d", issue) {
			return p.Number
		}
	}
	return 0
}
