package policy

import (
	"fmt"
	"strings"
	"testing"
)

// TestCommandTable compares the README's table with Commands.
func TestCommandTable(t *testing.T) {
	const head = "| command | does |\n|---|---|\n"
	var table strings.Builder
	table.WriteString(head)
	for _, c := range Commands {
		fmt.Fprintf(&table, "| `%s` | %s |\n", c.Usage(), c.Readme)
	}
	holdsTable(t, "../README.md", head, table.String())
}

func TestEveryCommandIsExplained(t *testing.T) {
	var help strings.Builder
	for _, c := range Commands {
		fmt.Fprintf(&help, "`%s` %s\n", c.Usage(), c.Help)
	}
	seen := map[string]bool{UnknownCommand: true, "": true}
	for _, c := range Commands {
		if seen[c.Name] {
			t.Errorf("%q is not a name, or another command's", c.Name)
		}
		seen[c.Name] = true
		if c.Readme == "" {
			t.Errorf("the README does not explain %s", c.Name)
		}
		if c.Help == "" && strings.Count(help.String(), "`"+c.Usage()+"`") < 2 {
			t.Errorf("no command's help explains %s", c.Name)
		}
		if (c.Page == "") != (c.Shell == "") {
			t.Errorf("%s must be both a button on the pages and a command in the shell, or neither", c.Name)
		}
		if len(c.Button) > 40 || len(c.Name) > 20 {
			t.Errorf("GitHub refuses the button of %s", c.Name)
		}
	}
}

func TestMistypedCommandHasANearest(t *testing.T) {
	for word, want := range map[string]string{
		"slove": "solve", "Solve": "solve", "retyr": "retry", "rety": "retry", "stopp": "stop", "esclate": "escalate",
		"unpuase": "unpause", "ues": "use", "goo": "go", "statsu": "status", "resum": "resume",
		"fix": "", "deploy": "", "": "", "help": "", "x": "", "no": "", "us": "", "merge": "", "continue": "", "überall": "", strings.Repeat("solve", 50): "",
	} {
		if got := NearestCommand(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
}
