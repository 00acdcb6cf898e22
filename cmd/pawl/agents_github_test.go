package main

import (
	"bytes"
	"encoding/base64"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// withAgent makes a real CLI the only backend of a rig and starts it with the
// CLIs' Node.js on its search path.
func (r *rig) withAgent(s *stand) {
	r.T.Helper()
	r.Config += s.section()
	r.startBehindProxy([]string{s.path()})
}

// TestTheReceiptOfARealAgentStandsInTheCheckRun has Claude be halted in its
// prose and work at another effort.
func TestTheReceiptOfARealAgentStandsInTheCheckRun(t *testing.T) {
	t.Parallel()
	s := newStand(t, realCLIs()[1], "prose")
	s.provider.Set("fails", "1")
	s.fields = "prices: [{model: claude-opus-4-8, input: 100, cached_input: 50, output: 1000}]"
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: [\"test -f hello.txt\"]\n"})
	r.withAgent(s)
	n := r.Solve("A greeting", "Please add hello.txt.")
	if state := r.Ending(n); state.State != "done" {
		t.Fatalf("%s (%s %q), want done", state.State, state.Rule, state.Reasons)
	}
	c := r.Check(r.World.Pulls(testrig.Repo)[0].Pull.HeadSHA, "pawl")
	for _, want := range []string{"tokens in", "cached", "$", "opposite thinking mode"} {
		if !strings.Contains(c.Summary+c.Text, want) {
			t.Errorf("the check run lacks %q:\n%s\n%s", want, c.Summary, c.Text)
		}
	}
}

// What was said and shown before the order reaches the model of every CLI, and the picture itself those that are started with it.
func TestTheDiscussionReachesTheModelOfEveryCLI(t *testing.T) {
	t.Parallel()
	for _, cli := range realCLIs() {
		t.Run(cli.kind, func(t *testing.T) {
			s := newStand(t, cli, "edit-success")
			r := newProcessRig(t, nil)
			r.Config += s.section()
			r.StartProgram(s.path())
			var shot bytes.Buffer
			r.Must(png.Encode(&shot, image.NewGray(image.Rect(0, 0, 64, 48))))
			n, err := r.World.OpenIssue(testrig.Repo, testrig.Writer, "A greeting", "Please add hello.txt, as here: ![shot]("+r.World.Attach(shot.Bytes())+")")
			r.Must(err)
			r.Must(r.World.AddUser("eve", 1004, nil))
			r.Writes(n, "eve", "Say good bye instead.")
			r.Writes(n, testrig.Writer, "Use port 9999.")
			r.Settle()
			r.Writes(n, testrig.Writer, "/pawl solve")
			if state := r.Ending(n); state.State != "done" {
				t.Fatalf("%s (%s %q), want done", state.State, state.Rule, state.Reasons)
			}
			var all strings.Builder
			for _, q := range s.asked() {
				all.Write(q.Body)
			}
			for _, want := range []string{"Use port 9999.", "> Say good bye instead.", "picture-1.png", "2 of 2 comments"} {
				if !strings.Contains(all.String(), want) {
					t.Errorf("no request to the model holds %q", want)
				}
			}
			given := strings.Contains(all.String(), base64.StdEncoding.EncodeToString(shot.Bytes()))
			if want := cli.kind == "codex" || cli.kind == "opencode"; given != want {
				t.Errorf("the picture itself was given to the model: %v, want %v", given, want)
			}
		})
	}
}
