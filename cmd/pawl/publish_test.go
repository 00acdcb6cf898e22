package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// encoded returns a text with the value in base64. part is its middle, which depends on the value alone.
func encoded(v string) (whole, part string) {
	whole = base64.StdEncoding.EncodeToString([]byte("~" + v + "~~"))
	return whole, whole[6 : len(whole)-6]
}

// carriers are files that contain a value: as text, as base64, in a binary file, and as a file's name. The tests of
// internal/secret cover all encodings.
func carriers(name, v string) map[string]string {
	whole, _ := encoded(v)
	var parts []string // folders, because a file's name may not be longer than 255 bytes
	for part := range slices.Chunk([]byte(url.PathEscape(v)), 200) {
		parts = append(parts, string(part))
	}
	return map[string]string{
		name + ".txt":                         "see:\nkey = \"" + v + "\"\n",
		name + ".b64":                         "see:\n" + whole + "\n",
		name + ".bin":                         "\x00\x01\n\xff" + v + "\x00",
		strings.Join(parts, "/") + "." + name: "see\n",
	}
}

// letters returns the letters and digits of a text.
func letters(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// reveals reports whether a text of letters and digits contains a value.
func reveals(text, v string) bool {
	_, part := encoded(v)
	return slices.ContainsFunc([]string{v, part, url.PathEscape(v)}, func(form string) bool { return strings.Contains(text, letters(form)) })
}

// published returns all texts that GitHub shows: check runs, pull requests and comments. It adds the threads on Pawl's
// pages and in pawl status.
func (r *rig) published(threads ...int) string {
	r.T.Helper()
	var shown strings.Builder
	for _, c := range r.World.CheckRuns(testrig.Repo) {
		fmt.Fprintf(&shown, "%+v\n", c)
	}
	numbers := threads
	for _, p := range r.World.Pulls(testrig.Repo) {
		fmt.Fprintf(&shown, "%+v\n", p)
		numbers = append(numbers, p.Number)
	}
	for _, n := range numbers {
		fmt.Fprintf(&shown, "%+v\n", r.World.Comments(testrig.Repo, n))
	}
	for _, n := range threads {
		for _, path := range []string{"", "/attempts/1/log", "/attempts/1/raw"} {
			status, body := r.Get(fmt.Sprintf("/threads/%s/%d%s", testrig.Repo, n, path))
			if status != 200 || len(body) < 100 {
				r.T.Errorf("page %d%s: %d\n%s", n, path, status, body)
			}
			shown.WriteString(body)
		}
		_, out, _ := pawl(r.T, r.Dir, nil, "status", "--config", "pawl.yml", testrig.ThreadName(n))
		shown.WriteString(out)
	}
	return shown.String()
}

// codexOutput returns the output of a Codex run with these messages.
func codexOutput(t *testing.T, messages ...string) string {
	t.Helper()
	out := `{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}` + "\n"
	for _, m := range messages {
		text, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out += `{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":` + string(text) + "}}\n"
	}
	return out + `{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}` + "\n"
}

// TestGivenSecretsAreNotPublished gives an agent all secrets that Pawl gives to agents. It adds the server's secrets
// that an agent can find without a sandbox. The agent tries to publish them: in files on a pull request, and in
// messages on an issue.
func TestGivenSecretsAreNotPublished(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(`n=${PAWL_THREAD#*#}; cat > /dev/null
printf %s "$OPENAI_API_KEY" > "$CTRL/part.$n"; mv "$CTRL/part.$n" "$CTRL/token.$n"
until [ -e "$CTRL/go.$n" ]; do sleep 0.05; done
cp -r "$CTRL/tree.$n/." . ; cat "$CTRL/say.$n"
`, "provider: fake, stream: codex, env: [AGENT_VALUE]")
	r.Config += fmt.Sprintf("providers:\n  - {name: fake, protocol: openai, base_url: \"http://127.0.0.1:9/v1\", key: %q}\n", testrig.ProviderKey)
	const operators = "7Lm+Zr/4KpW \"d81\" cYhQeN-9tB"
	_, ofGit := r.startBehindProxy([]string{"AGENT_VALUE=" + operators})
	r.Push("feature", "Start", "f.txt", "start\n")
	pull, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Feature", Body: "A feature.", Head: "feature"})
	r.Must(err)
	r.Writes(pull, testrig.Writer, "/pawl solve")
	issue := r.Solve("A feature", "Please add it.")

	all := map[string]string{}
	acts := func(n int) {
		token := filepath.Join(r.Ctrl(), fmt.Sprintf("token.%d", n))
		r.Await("the agent", func() bool { _, err := os.Stat(token); return err == nil })
		text, err := os.ReadFile(token)
		r.Must(err)
		given := map[string]string{"provider": testrig.ProviderKey, "webhook": testrig.Secret, "operator": operators, "session": string(text)}
		for i, token := range ofGit() {
			given[fmt.Sprintf("git%d", i)] = token
		}
		if len(given) < 5 || len(text) < 40 {
			t.Fatalf("the agent has only %q", given)
		}
		maps.Copy(all, given)
		files, words := map[string]string{"f.txt": "done\n"}, ""
		for name, v := range given {
			whole, _ := encoded(v)
			words += "I found " + v + " there, and " + whole + ".\n\n"
			if n == pull {
				maps.Copy(files, carriers(name, v))
			}
		}
		for name, text := range files {
			path := filepath.Join(r.Ctrl(), fmt.Sprintf("tree.%d", n), name)
			r.Must(os.MkdirAll(filepath.Dir(path), 0o700))
			r.Must(os.WriteFile(path, []byte(text), 0o600))
		}
		words = "I found " + operators + " there.\n\n" + words // first, because long texts are cut
		stream := codexOutput(t, words, "TITLE: feat: "+words+"\nLEFT OUT: "+words+"\n"+words)
		write(t, filepath.Join(r.Ctrl(), fmt.Sprintf("say.%d", n)), stream)
		r.Touch(fmt.Sprintf("go.%d", n))
	}
	acts(pull)
	acts(issue)
	if s := r.Ending(pull); s.State != "stopped" || s.Rule != "secret" {
		t.Errorf("files: %s (%s %q), want secret", s.State, s.Rule, s.Reasons)
	}
	if s := r.Ending(issue); s.State != "done" {
		t.Errorf("messages: %s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}

	names, found := 0, map[string]bool{}
	for _, l := range r.State(pull).Attempts[0].Receipt.Leaks {
		found[l.Path] = true
		if l.Line == 0 {
			names++
		}
	}
	for name, v := range all {
		for path := range carriers(name, v) {
			if strings.HasPrefix(path, name+".") && !found[path] {
				t.Errorf("%s was not found in %s", name, path)
			}
		}
		if !reveals(letters("I found "+v), v) {
			t.Errorf("the control text does not reveal %s", name)
		}
	}
	if names < len(all)-1 { // the issue's attempt has another token
		t.Errorf("%d of %d values were found in file names", names, len(all))
	}
	for _, p := range r.World.Pushes(testrig.Repo) {
		if p.By != testrig.Writer && p.Branch != fmt.Sprintf("pawl/issue-%d", issue) {
			t.Errorf("pushed: %+v", p)
		}
	}
	shown, log := r.published(pull, issue), r.Git("log", "-p", "--all", "--text", "--format=fuller%n%D%n%B")
	for what, text := range map[string]string{"GitHub, pages and status": shown, "git": log, "the server's log": r.Log.String()} {
		for name, v := range all {
			if reveals(letters(text), v) {
				t.Errorf("%s: it contains the value %s", what, name)
			}
		}
	}
	for what, text := range map[string]string{"[hidden: AGENT_VALUE]": shown, "hidden": log} {
		if !strings.Contains(text, what) {
			t.Errorf("the agent's messages with %q are missing:\n%s", what, text)
		}
	}
}
