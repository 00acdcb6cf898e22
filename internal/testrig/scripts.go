package testrig

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/sandbox"
)

// ProviderKey is the fake provider's key. No agent may get it.
const ProviderKey = "sk-planted-provider-key-8b1f0c77d2e94a56"

// Kept returns sandbox.Auto if a sandbox works on this machine, and sandbox.None otherwise.
func Kept(t *testing.T) sandbox.Mode {
	t.Helper()
	if _, err := sandbox.New(t.Context(), sandbox.Auto); err != nil {
		t.Logf("without a sandbox: %v", err)
		return sandbox.None
	}
	return sandbox.Auto
}

// Gated is part of an agent script: it creates $CTRL/ready and waits until the test creates $CTRL/go.
const Gated = "touch \"$CTRL/ready\"; while [ ! -f \"$CTRL/go\" ]; do sleep 0.05; done\n"

// CodexAgent begins a script that prints Codex's stream. In the script, change PATH reports a changed file without its
// content, like Codex.
const CodexAgent = `cat > /dev/null; echo $$ > "$CTRL/pid"
n=0
count() { n=$((n+1)); echo $n > "$CTRL/edits.new"; mv "$CTRL/edits.new" "$CTRL/edits"; }
change() { count
  printf '{"type":"item.started","item":{"id":"i%d","type":"file_change","changes":[{"path":"%s/%s","kind":"update"}],"status":"in_progress"}}\n' $n "$PWD" "$1"
  printf '{"type":"item.completed","item":{"id":"i%d","type":"file_change","changes":[{"path":"%s/%s","kind":"update"}],"status":"completed"}}\n' $n "$PWD" "$1"; }
command() { count
  printf '{"type":"item.completed","item":{"id":"i%d","type":"command_execution","command":"%s","aggregated_output":"","exit_code":0,"status":"completed"}}\n' $n "$1"; }
printf '{"type":"thread.started","thread_id":"0199-aaaa-bbbb"}\n{"type":"turn.started"}\n'
`

// CodexEnd ends a script that began with CodexAgent.
const CodexEnd = `
printf '{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"Done."}}\n{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}\n'
`

// Limited is a Codex agent that hits its usage limit; %s is the reset time, as from ResetText.
const Limited = `cat > /dev/null
echo '{"type":"thread.started","thread_id":"019a72db-80ed-7911-8a8a-94994ffc009b"}'
echo '{"type":"turn.started"}'
echo '{"type":"error","message":"You have hit your usage limit. Upgrade to Pro or try again at %[1]s."}'
echo '{"type":"turn.failed","error":{"message":"You have hit your usage limit. Upgrade to Pro or try again at %[1]s."}}'
exit 1
`

func ResetText(t time.Time) string { return t.UTC().Format("3:04 PM") }

// Saying returns a Codex agent that writes messages in each call. The first call also runs the shell commands in does;
// later calls add a line to a.txt.
func Saying(t *testing.T, does string, messages ...string) string {
	t.Helper()
	lines := []string{`{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}`, `{"type":"turn.started"}`}
	for _, m := range messages {
		item, err := json.Marshal(map[string]any{"type": "item.completed", "item": map[string]string{"id": "i1", "type": "agent_message", "text": m}})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(item))
	}
	lines = append(lines, `{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}`)
	return "n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\n[ $n = 1 ] || echo two >> a.txt\nif [ $n = 1 ]; then\n:\n" + does +
		"\nfi\ncat <<'END'\n" + strings.Join(lines, "\n") + "\nEND\n"
}

// Nap returns a duration for sleep that no other test uses, so that a test can find its own process.
func Nap(i int) string { return strconv.Itoa(3_000_000 + os.Getpid()*100 + i) }

// Sandboxed skips a test on a machine without a sandbox.
func Sandboxed(t *testing.T) {
	t.Helper()
	needs.Program(t, "bwrap")
	if Kept(t) == sandbox.None {
		t.Skip("no sandbox works on this machine")
	}
}

// Looking returns a rig whose agent tries several hosts and writes the answers to seen.txt. The verify command tries a host
// that no list allows. seen runs the agent on an issue and returns seen.txt.
func Looking(t *testing.T, network string) (r *Rig, seen func() string) {
	t.Helper()
	r = New(t, map[string]string{
		"a.txt":         "one\n",
		config.RepoFile: AllChecks + "verify:\n  - curl -sS -m 20 https://verify.example.org/ || test -s seen.txt\n",
	})
	listed := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "the listed server") }))
	t.Cleanup(listed.Close)
	_, port, _ := net.SplitHostPort(listed.Listener.Addr().String())
	r.Agent("", "")
	r.Must(os.WriteFile(filepath.Join(r.Dir, "agent.sh"), []byte(`#!/bin/sh
cat > /dev/null
{
echo listed: $(curl -sS -m 20 --noproxy '' -x "${http_proxy:-http://127.0.0.1:29402}" http://localhost:`+port+`/ 2>&1)
echo direct: $(curl -sS -m 20 http://localhost:`+port+`/ 2>&1)
echo github: $(curl -sS -m 20 `+r.World.APIURL()+` 2>&1 | head -c 60)
echo other: $(curl -sS -m 20 https://other.example.org/ 2>&1)
echo plain: $(curl -sS -m 20 http://plain.example.org/ 2>&1)
echo metadata: $(curl -sS -m 20 --noproxy '*' http://169.254.169.254/ 2>&1)
} > seen.txt
`), 0o700))
	if network != "" {
		network = ", network: " + network
	}
	r.Config += fmt.Sprintf("sandbox: {mode: auto%s}\nnetwork: {agent: [\"localhost:%s\"], private: [127.0.0.0/8]}\n", network, port)
	return r, func() string {
		r.Start()
		n := r.Solve("Look around", "Please look around.")
		if s := r.Ending(n); s.State != "done" {
			t.Fatalf("%s (%s %q), want done", s.State, s.Rule, s.Reasons)
		}
		text, err := r.World.File(t.Context(), Repo, fmt.Sprintf("pawl/issue-%d", n), "seen.txt")
		r.Must(err)
		return text
	}
}

// Asked is an agent that answers, plans or works, depending on its prompt. It always changes a.txt.
const Asked = `n=$(wc -l < "$CTRL/calls" | tr -d ' '); cat > "$CTRL/prompt.$n"
echo "by $n" >> a.txt
if grep -q 'Answer the question below' "$CTRL/prompt.$n"; then
	printf 'It is in a.txt, @everyone.\n<!-- pawl:status x --> see #1\n'
elif grep -q 'Make a plan' "$CTRL/prompt.$n"; then
	printf '1. add two\n2. add three, @everyone\n'
else
	echo 'I added it.'
fi
`

// CommentsWith returns Pawl's comments on a thread that contain the text.
func (r *Rig) CommentsWith(n int, text string) (all []fakegithub.Comment) {
	for _, c := range r.World.Comments(Repo, n) {
		if c.Author == "pawl[bot]" && strings.Contains(c.Body, text) {
			all = append(all, c)
		}
	}
	return all
}

// Refs lists the repository's references and their commits.
func (r *Rig) Refs() string {
	r.T.Helper()
	refs, err := r.World.Git(r.T.Context(), Repo, "for-each-ref", "--format=%(refname) %(objectname)")
	r.Must(err)
	return refs
}

// Headlines of comments with Pawl's answers and plans.
const (
	AnAnswer = "The agent's answer. Nothing was changed."
	APlan    = "The agent's plan. Nothing was changed yet"
)
