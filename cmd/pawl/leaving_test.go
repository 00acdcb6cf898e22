package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// carried are the files, by name, and the words by which a value is carried out, and what of them gives it away.
type carried struct {
	files map[string]string
	words string
	gives []string
}

// carrying are ways to carry a value out. Each puts it into a file, from the second line on; name tells values apart. Words
// reach the transcript as JSON.
func carrying() map[string]func(name, v string) carried {
	written := func(write func(string) string) func(string, string) carried {
		return func(name, v string) carried {
			w := write(v)
			return carried{map[string]string{name + ".txt": "see:\nkey = \"" + w + "\"\n"}, "I found " + w + " there.", []string{w[6 : len(w)-6]}}
		}
	}
	base := func(before string, e *base64.Encoding) func(string, string) carried {
		return written(func(v string) string { return e.EncodeToString([]byte(before + v + "~~")) })
	}
	return map[string]func(name, v string) carried{
		"plain": written(func(v string) string { return v }), "base64": base("", base64.StdEncoding), "base64 behind one": base("~", base64.StdEncoding),
		"base64 behind two": base("~~", base64.StdEncoding), "base64 of URLs": base("~", base64.URLEncoding),
		"hexadecimal": written(func(v string) string { return hex.EncodeToString([]byte(v)) }),
		"URL":         written(url.QueryEscape),
		"a binary file": func(name, v string) carried {
			return carried{map[string]string{name + ".bin": "\x00\x01\n\xff" + v + "\x00"}, "\x01" + v, []string{v}}
		},
		"the name of a file": func(name, v string) carried {
			var parts []string // of a name that a file system takes
			for part := range slices.Chunk([]byte(url.PathEscape(v)), 200) {
				parts = append(parts, string(part))
			}
			file := strings.Join(parts, "/") + "." + name
			return carried{map[string]string{file: "see\n"}, "See " + file, []string{url.PathEscape(v)}}
		},
	}
}

// plain are the letters and digits of a text.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return -1
	}, s)
}

// in tells whether a plain text gives the value away, whatever stands between its letters and digits.
func (c carried) in(text string) bool {
	return !slices.ContainsFunc(c.gives, func(part string) bool { return !strings.Contains(text, plain(part)) })
}

// shows are the pages of a thread and what pawl status says of it.
func (r *rig) shows(n int) (all string) {
	r.T.Helper()
	for _, path := range []string{"", "/attempts/1/log", "/attempts/1/raw"} {
		status, body := r.Get(fmt.Sprintf("/threads/%s/%d%s", testrig.Repo, n, path))
		if status != 200 || len(body) < 100 {
			r.T.Errorf("page %d%s: %d\n%s", n, path, status, body)
		}
		all += body
	}
	out, err := exec.Command(testrig.Program, "status", "--config", filepath.Join(r.Dir, "pawl.yml"), testrig.ThreadName(n)).CombinedOutput()
	r.Must(err)
	return all + string(out)
}

// tellsLeaks looks whether the check run of a pull request names the places of its leaks, and gives the names of their files.
func (r *rig) tellsLeaks(way string, n int) map[string]bool {
	r.T.Helper()
	head := r.Head(n)
	r.Await("the check run", func() bool { return r.Check(head, "pawl").Conclusion == "action_required" })
	told := r.Check(head, "pawl")
	said := strings.ReplaceAll(told.Title+told.Summary+told.Text, "`", "")
	names := map[string]bool{}
	for _, l := range r.State(n).Attempts[0].Receipt.Leaks {
		at := fmt.Sprintf("line %d of %s looks like", l.Line, l.Path)
		if l.Line == 0 {
			at = "the name of a file looks like"
		}
		if !strings.Contains(said, at) && len(names) < 3 || l.Line == 1 {
			r.T.Errorf("%s: the check run does not say %q:\n%s", way, at, said)
		}
		names[strings.TrimSuffix(strings.TrimSuffix(filepath.Base(l.Path), filepath.Ext(l.Path)), "/")] = true
	}
	return names
}

// acts lets the agent of a thread write files and say words.
func (r *rig) acts(n int, files map[string]string, words ...string) {
	r.T.Helper()
	tree := filepath.Join(r.Ctrl(), fmt.Sprintf("tree.%d", n))
	for name, text := range files {
		r.Must(os.MkdirAll(filepath.Dir(filepath.Join(tree, name)), 0o700))
		r.Must(os.WriteFile(filepath.Join(tree, name), []byte(text), 0o600))
	}
	said := ""
	for _, m := range words {
		item, err := json.Marshal(map[string]any{"type": "item.completed", "item": map[string]string{"id": "i1", "type": "agent_message", "text": m}})
		r.Must(err)
		said += string(item) + "\n"
	}
	said = `{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}` + "\n" + said + `{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}` + "\n"
	r.Must(os.WriteFile(filepath.Join(r.Ctrl(), fmt.Sprintf("say.%d", n)), []byte(said), 0o600))
	r.Must(os.WriteFile(filepath.Join(r.Ctrl(), fmt.Sprintf("go.%d", n)), nil, 0o600))
}

// published is what GitHub shows of check runs, pull requests and an issue.
func (r *rig) published(issue int) string {
	var shown strings.Builder
	for _, c := range r.World.CheckRuns(testrig.Repo) {
		fmt.Fprintf(&shown, "%+v\n", c)
	}
	numbers := []int{issue}
	for _, p := range r.World.Pulls(testrig.Repo) {
		fmt.Fprintf(&shown, "%+v\n", p)
		numbers = append(numbers, p.Number)
	}
	for _, n := range numbers {
		for _, c := range r.World.Comments(testrig.Repo, n) {
			shown.WriteString(c.Body)
		}
	}
	return shown.String()
}

// givesNothingAway looks for values, carried in every way, in a plain text.
func givesNothingAway(t *testing.T, what, text string, values map[string]string) {
	t.Helper()
	for name, v := range values {
		for way, carry := range carrying() {
			if carry("x", v).in(text) {
				t.Errorf("%s give %s away: %s", what, name, way)
			}
		}
	}
}

// TestNothingThatPawlGaveLeaves has an agent that holds all that Pawl gave it, and what it finds of the server where there
// is no sandbox, carry it out in every way of carrying, in files and in words.
func TestNothingThatPawlGaveLeaves(t *testing.T) {
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
	ways := carrying()
	threads := map[string]int{}
	for way := range ways { // each on a pull request of its own
		branch := strings.ReplaceAll(way, " ", "-")
		_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: branch, Message: "Start", Files: map[string]string{"f.txt": way + "\n"}})
		r.Must(err)
		n, err := r.World.OpenPull(t.Context(), testrig.Repo, testrig.Writer, fakegithub.PullRequest{Title: "Feature", Body: "A feature.", Head: branch})
		r.Must(err)
		threads[way] = n
		_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve")
		r.Must(err)
	}
	issue := r.Solve("A feature", "Please add it.") // in words only
	every := map[string]string{}                    // what was given on any thread
	values := func(n int) map[string]string {
		text, err := os.ReadFile(filepath.Join(r.Ctrl(), fmt.Sprintf("token.%d", n)))
		r.Must(err)
		v := map[string]string{"provider": testrig.ProviderKey, "webhook": testrig.Secret, "operator": operators, "session": string(text)}
		for i, token := range ofGit() {
			v[fmt.Sprintf("git%d", i)] = token
		}
		if len(v) < 5 || len(text) < 40 {
			t.Fatalf("the agent holds %q", v)
		}
		for name, value := range v {
			every[fmt.Sprintf("%s %d", name, n)] = value
		}
		return v
	}
	given := map[string]map[string]string{}
	serve := func(n int) {
		files, words := map[string]string{"f.txt": "done\n"}, "I found "+operators+" there.\n\n" // first, as long words are cut
		for way, carry := range ways {
			if n != issue && threads[way] != n {
				continue
			}
			given[way] = values(n)
			for name, v := range given[way] {
				c := carry(name, v)
				words += c.words + "\n\n"
				if !c.in(plain(c.words)) {
					t.Errorf("%s, %s: the words do not give it away: %q", name, way, c.words) // the control
				}
				for file, text := range c.files {
					if n != issue {
						files[file] = text
					}
				}
			}
		}
		r.acts(n, files, words, "TITLE: feat: "+words+"\nLEFT OUT: "+words+"\n"+words)
	}
	waiting := append(slices.Collect(maps.Values(threads)), issue)
	r.Await("all agents", func() bool { // as many as have room
		waiting = slices.DeleteFunc(waiting, func(n int) bool {
			_, err := os.Stat(filepath.Join(r.Ctrl(), fmt.Sprintf("token.%d", n)))
			if err == nil {
				serve(n)
			}
			return err == nil
		})
		return len(waiting) == 0
	})
	var shown strings.Builder
	for way, n := range threads {
		if s := r.Ending(n); s.State != "stopped" || s.Rule != "secret" {
			t.Errorf("%s: %s (%s %q), want secret", way, s.State, s.Rule, s.Reasons)
			continue
		}
		names := r.tellsLeaks(way, n)
		for name := range given[way] {
			if way != "the name of a file" && !names[name] {
				t.Errorf("%s: the value of %s was not found; %q were", way, name, slices.Sorted(maps.Keys(names)))
			}
		}
		shown.WriteString(r.shows(n))
	}
	if s := r.Ending(issue); s.State != "done" {
		t.Errorf("words: %s (%s %q), want done", s.State, s.Rule, s.Reasons)
	}
	shown.WriteString(r.shows(issue))
	for _, p := range r.World.Pushes(testrig.Repo) {
		if p.By != testrig.Writer && p.Branch != fmt.Sprintf("pawl/issue-%d", issue) {
			t.Errorf("pushed: %+v", p)
		}
	}
	shown.WriteString(r.published(issue))
	log, err := r.World.Git(t.Context(), testrig.Repo, "log", "-p", "--all", "--text", "--format=fuller%n%D%n%B")
	r.Must(err)
	for what, text := range map[string]string{"GitHub, pages and status": shown.String(), "git": log, "the server's log": r.Log.String()} {
		givesNothingAway(t, what, plain(text), every)
	}
	for what, text := range map[string]string{"[hidden: AGENT_VALUE]": shown.String(), "hidden": log} {
		if !strings.Contains(text, what) {
			t.Errorf("the agent's words are not there, with %q:\n%s", what, text)
		}
	}
}
