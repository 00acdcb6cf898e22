package fakegithub_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func output(title, summary string) *github.CheckRunOutput {
	return &github.CheckRunOutput{Title: &title, Summary: &summary}
}

func TestACheckRunIsCreatedUpdatedAndFound(t *testing.T) {
	h := newHouse(t)
	_, head := h.opened()
	run, resp, err := h.client.Checks.CreateCheckRun(h.ctx, "acme", "tools", github.CreateCheckRunOptions{Name: "pawl", HeadSHA: head,
		ExternalID: github.String("acme/tools#1"), Status: github.String("in_progress"), Output: output("running", "one attempt"),
		Actions: []*github.CheckRunAction{{Label: "Stop", Description: "Stop the run", Identifier: "stop"}}})
	must(t, err)
	if resp.StatusCode != 201 || run.GetStatus() != "in_progress" || run.GetApp().GetID() != 7 || len(run.PullRequests) != 1 || run.GetCheckSuite().GetID() == 0 {
		t.Fatalf("%d %v", resp.StatusCode, run)
	}
	out := output("done", "all good")
	_, _, err = h.client.Checks.UpdateCheckRun(h.ctx, "acme", "tools", run.GetID(), github.UpdateCheckRunOptions{Name: "pawl", Conclusion: github.String("success"), Output: out})
	must(t, err)
	found, _, err := h.client.Checks.ListCheckRunsForRef(h.ctx, "acme", "tools", head, &github.ListCheckRunsOptions{CheckName: github.String("pawl"), AppID: github.Int64(7)})
	must(t, err)
	if found.GetTotal() != 1 || found.CheckRuns[0].GetStatus() != "completed" || found.CheckRuns[0].GetConclusion() != "success" ||
		found.CheckRuns[0].GetOutput().GetSummary() != "all good" || found.CheckRuns[0].GetExternalID() != "acme/tools#1" {
		t.Fatalf("%v", found)
	}
	must(t, h.ClickButton(repo, run.GetID(), "stop", "wendy"))
	if err := h.ClickButton(repo, run.GetID(), "explode", "wendy"); err == nil {
		t.Fatal("a missing button was pressed")
	}
	must(t, h.Rerequest(repo, run.GetID(), "wendy"))
	var actions []string
	for _, k := range h.settled("check_run") {
		actions = append(actions, k.action())
		if k.action() == "requested_action" && (k.at("requested_action", "identifier") != "stop" || k.at("sender", "login") != "wendy") {
			t.Errorf("%s", k.raw)
		}
	}
	if diff := cmp.Diff([]string{"created", "completed", "requested_action", "rerequested"}, actions); diff != "" {
		t.Fatal(diff)
	}
}

func TestAnUpdateReplacesTheWholeOutputAndReopensARun(t *testing.T) {
	h := newHouse(t)
	_, head := h.opened()
	full := output("t", "s")
	full.Text = github.String("details")
	run, _, err := h.client.Checks.CreateCheckRun(h.ctx, "acme", "tools", github.CreateCheckRunOptions{Name: "pawl", HeadSHA: head, Conclusion: github.String("neutral"), Output: full})
	must(t, err)
	if run.GetStatus() != "completed" {
		t.Fatal("a run with a conclusion is not completed")
	}
	run, _, err = h.client.Checks.UpdateCheckRun(h.ctx, "acme", "tools", run.GetID(), github.UpdateCheckRunOptions{Name: "pawl", Status: github.String("in_progress"), Output: output("t2", "s2")})
	must(t, err)
	if run.GetOutput().GetText() != "" || run.GetOutput().GetTitle() != "t2" || run.GetConclusion() != "" || run.GetStatus() != "in_progress" {
		t.Fatalf("%v", run)
	}
}

func TestCheckRunsAreValidatedAsDocumented(t *testing.T) {
	h := newHouse(t)
	_, head := h.opened()
	action := func(label, description, identifier string) []*github.CheckRunAction {
		return []*github.CheckRunAction{{Label: label, Description: description, Identifier: identifier}}
	}
	many := &github.CheckRunOutput{Title: github.String("t"), Summary: github.String("s")}
	for i := range 51 {
		many.Annotations = append(many.Annotations, &github.CheckRunAnnotation{Path: github.String("a"), StartLine: github.Int(i + 1), EndLine: github.Int(i + 1),
			AnnotationLevel: github.String("notice"), Message: github.String("m")})
	}
	x := strings.Repeat
	for name, c := range map[string]struct {
		opts github.CreateCheckRunOptions
		want string // empty: accepted
	}{
		"the longest summary":    {github.CreateCheckRunOptions{Output: output("t", x("a", 65535))}, ""},
		"a summary one too long": {github.CreateCheckRunOptions{Output: output("t", x("a", 65536))}, "Only 65535 characters are allowed; 65536 were supplied."},
		"bytes count":            {github.CreateCheckRunOptions{Output: output("t", x("é", 32768))}, "Only 65535"},
		"no title":               {github.CreateCheckRunOptions{Output: &github.CheckRunOutput{Summary: github.String("s")}}, `"title" wasn't`},
		"four actions": {github.CreateCheckRunOptions{Actions: append(append(action("a", "b", "c"), action("a", "b", "c")...), append(action("a", "b", "c"), action("a", "b", "c")...)...)},
			"No more than 3 items are allowed; 4 were supplied."},
		"the longest action":       {github.CreateCheckRunOptions{Actions: action(x("l", 20), x("d", 40), x("i", 20))}, ""},
		"a long label":             {github.CreateCheckRunOptions{Actions: action(x("l", 21), "d", "i")}, "only 20 characters are allowed"},
		"a long description":       {github.CreateCheckRunOptions{Actions: action("l", x("d", 41), "i")}, "only 40 characters are allowed"},
		"a long identifier":        {github.CreateCheckRunOptions{Actions: action("l", "d", x("i", 21))}, "only 20 characters are allowed"},
		"51 annotations":           {github.CreateCheckRunOptions{Output: many}, "No more than 50 items"},
		"completed, no conclusion": {github.CreateCheckRunOptions{Status: github.String("completed")}, "conclusion"},
		"an invented conclusion":   {github.CreateCheckRunOptions{Conclusion: github.String("splendid")}, "is not a member of"},
		"an invented status":       {github.CreateCheckRunOptions{Status: github.String("thinking")}, "is not a member of"},
		"an unknown commit":        {github.CreateCheckRunOptions{HeadSHA: x("1", 40)}, "No commit found for SHA"},
	} {
		t.Run(name, func(t *testing.T) {
			c.opts.Name = "pawl"
			if c.opts.HeadSHA == "" {
				c.opts.HeadSHA = head
			}
			_, _, err := h.client.Checks.CreateCheckRun(h.ctx, "acme", "tools", c.opts)
			if c.want == "" {
				must(t, err)
				return
			}
			wantStatus(t, err, 422, c.want)
		})
	}
}

func TestLongTextIsCutSilently(t *testing.T) {
	h := newHouse(t)
	_, head := h.opened()
	out := output("t", "s")
	out.Text = github.String(strings.Repeat("é", 40000))
	_, _, err := h.client.Checks.CreateCheckRun(h.ctx, "acme", "tools", github.CreateCheckRunOptions{Name: "pawl", HeadSHA: head, Output: out})
	must(t, err)
	if n := len(h.CheckRuns(repo)[0].Text); n != 65534 {
		t.Fatalf("%d bytes", n)
	}
}

func TestCheckRunsOfAnotherAppAreSeenButNotChanged(t *testing.T) {
	h := newHouse(t)
	_, head := h.opened()
	h.AddOtherApp("ci", 99)
	id, err := h.CompleteCheckRun(repo, "ci", fakegithub.CheckResult{SHA: head, Name: "build", Conclusion: "failure", Title: "broken", Summary: "it does not build"})
	must(t, err)
	_, _, err = h.client.Checks.UpdateCheckRun(h.ctx, "acme", "tools", id, github.UpdateCheckRunOptions{Name: "build"})
	wantStatus(t, err, 403, "can only be modified by the GitHub App that created it")
	_, err = h.CompleteCheckRun(repo, "ci", fakegithub.CheckResult{SHA: head, Name: "build", Conclusion: "success", Title: "fine", Summary: "it builds"})
	must(t, err)
	for filter, want := range map[string]int{"latest": 1, "all": 2} {
		list, _, err := h.client.Checks.ListCheckRunsForRef(h.ctx, "acme", "tools", head, &github.ListCheckRunsOptions{Filter: &filter})
		must(t, err)
		if list.GetTotal() != want || list.CheckRuns[0].GetConclusion() != "success" {
			t.Errorf("filter=%s: %d, want %d", filter, list.GetTotal(), want)
		}
	}
	must(t, h.Rerequest(repo, id, "wendy"))
	var got []string
	for _, k := range h.settled("check_run") {
		got = append(got, fmt.Sprintf("%s %v", k.action(), k.at("check_run", "app", "slug")))
	}
	if diff := cmp.Diff([]string{"created ci", "completed ci", "created ci", "completed ci"}, got); diff != "" {
		t.Fatal(diff)
	}
}
