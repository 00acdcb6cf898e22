package forge

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestAnnotationsAreReadFailuresFirstAndBounded(t *testing.T) {
	gh, c, repo, sha := fake(t)
	gh.AddOtherApp("ci", 900)
	var notes []fakegithub.CheckAnnotation
	for n := range 120 {
		notes = append(notes, fakegithub.CheckAnnotation{Path: "a.go", Line: n + 1, Level: "warning", Message: "deprecated"})
	}
	for n := range 130 {
		notes = append(notes, fakegithub.CheckAnnotation{Path: "a_test.go", Line: n + 1, Title: "TestSorted", Message: fmt.Sprint("case ", n, strings.Repeat(" x", 5000))})
	}
	id, err := gh.CompleteCheckRun("octo/hello", "ci", fakegithub.CheckResult{SHA: sha, Name: "unit", Conclusion: "failure", Annotations: notes})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Annotations(t.Context(), repo, id)
	if err != nil || len(got) != 50 {
		t.Fatalf("%d annotations, %v; want 50", len(got), err)
	}
	if a := got[0]; a.Path != "a_test.go" || a.StartLine != 1 || !strings.HasPrefix(a.Message, "TestSorted: case 0 x") || len(a.Message) > maxMessage {
		t.Errorf("the first is %s:%d %.40q of %d bytes, want the first failure, cut", a.Path, a.StartLine, a.Message, len(a.Message))
	}
	if a := got[49]; a.Level != "failure" || a.StartLine != 50 {
		t.Errorf("the last is %s:%d (%s), want the fiftieth failure", a.Path, a.StartLine, a.Level)
	}
}

func TestAFewFailuresAreFollowedByTheOtherAnnotations(t *testing.T) {
	gh, c, repo, sha := fake(t)
	gh.AddOtherApp("ci", 900)
	id, err := gh.CompleteCheckRun("octo/hello", "ci", fakegithub.CheckResult{SHA: sha, Name: "unit", Conclusion: "failure", Annotations: []fakegithub.CheckAnnotation{
		{Path: ".github", Line: 1, Level: "warning", Message: "Node.js 16 actions are deprecated."},
		{Path: ".github", Line: 9, Title: "exit code 1", Message: "Process completed with exit code 1."},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Annotations(t.Context(), repo, id)
	if err != nil || len(got) != 2 || got[0].Message != "Process completed with exit code 1." || got[1].Level != "warning" {
		t.Errorf("%+v, %v; want the failure, then the warning", got, err)
	}
	if _, err := c.Annotations(t.Context(), repo, id+1); !errors.Is(err, ErrNotFound) {
		t.Errorf("a check run that does not exist: %v, want ErrNotFound", err)
	}
}
