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

// The comments before the command reach every CLI's model. A comment's picture reaches only CLIs that take pictures as
// arguments.
func TestDiscussionReachesEveryCLIsModel(t *testing.T) {
	t.Parallel()
	for _, cli := range realCLIs() {
		t.Run(cli.kind, func(t *testing.T) {
			s := newCLIRig(t, cli, "edit-success")
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
			for _, q := range s.requests() {
				all.Write(q.Body)
			}
			for _, want := range []string{"Use port 9999.", "> Say good bye instead.", "picture-1.png", "2 of 2 comments"} {
				if !strings.Contains(all.String(), want) {
					t.Errorf("no request to the model contains %q", want)
				}
			}
			given := strings.Contains(all.String(), base64.StdEncoding.EncodeToString(shot.Bytes()))
			if want := cli.kind == "codex" || cli.kind == "opencode"; given != want {
				t.Errorf("the model got the picture: %v, want %v", given, want)
			}
		})
	}
}
