package checkrun

import (
	"fmt"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/solver/thread"
)

// NameConfig is the check run on a commit that changes the repository's configuration.
const NameConfig = "pawl/config"

// ConfigFile is that check run: what is wrong with the file as it is at the commit, or that it is gone.
func ConfigFile(sha string, there bool, problems []config.Problem) forge.CheckRun {
	c := forge.CheckRun{Name: NameConfig, HeadSHA: sha, ExternalID: "config:" + sha, Status: Completed, Conclusion: Success}
	c.Title = configPath + " has no error"
	c.Summary = "This server can work by it. Pawl reads the file from the default branch only: it holds from the merge on."
	switch n := len(problems); {
	case n > 0:
		c.Conclusion = Failure
		c.Title = fmt.Sprintf("%s has %d %s", configPath, n, text.When(n == 1, "error")+text.When(n > 1, "errors"))
		c.Summary = "On the default branch nothing would run with it. Each error is marked at its line:\n"
		var all []thread.Problem
		for _, p := range problems {
			all = append(all, thread.Problem{Path: configPath, Line: p.Line, Message: p.Key + text.When(p.Key != "", " ") + p.Message})
		}
		c.Annotations = annotations(all)
		for _, a := range c.Annotations {
			c.Summary += fmt.Sprintf("\n- line %d: %s", a.StartLine, text.Prose(a.Message))
		}
	case !there:
		c.Title = configPath + " is removed"
		c.Summary = "Without the file the server's own configuration holds, and nothing verifies attempts."
	}
	return c
}
