package policy

import (
	"slices"
	"strings"
)

// CommandRow describes a command for the parser, buttons, help and the README.
type CommandRow struct {
	// Name follows /pawl and identifies the button.
	Name string
	// Argument is printed after the name, such as [text]; empty for none.
	Argument string
	Takes    Takes
	// Effect says what the command does. Only BeginsWork counts as feedback.
	Effect Effect
	// Forces starts an attempt even after failures, with the last purpose.
	Forces bool
	// GoesOn means that the command without a text adds nothing to the task.
	GoesOn bool
	// Joins means that the text is for the running attempt, whatever its purpose.
	Joins bool
	// Purpose of the attempt, unless Forces or Joins is set.
	Purpose Purpose
	// Permission is the least required permission on the repository.
	Permission Permission
	// Button describes the check run's button; empty for none. GitHub shows at most 40 characters.
	Button string
	// Page is the button's text on a thread's page; empty for none. If the command Pauses, the repository's name
	// follows.
	Page string
	// Shell summarises the shell command of the same name. Every page button has one.
	Shell string
	// ShellLong follows Shell in the shell's help.
	ShellLong string
	// Help follows the name in the answer to an unknown command.
	Help string
	// Readme is the text in the README's table.
	Readme string
}

// Takes selects the argument text of a command.
type Takes string

const (
	TakesLine  Takes = ""      // the rest of the line
	TakesLines Takes = "lines" // the rest of the line and all following lines
	TakesWord  Takes = "word"  // the next word
)

type Effect string

const (
	BeginsWork Effect = ""         // asks for work, like a remark without a command
	Controls   Effect = "controls" // changes the thread's state
	Answers    Effect = "answers"  // posts a comment
	Pauses     Effect = "pauses"   // changes the repository's state
)

type Permission string

const (
	Write    Permission = ""
	Maintain Permission = "maintain"
)

// UnknownCommand names any word after /pawl that is not in Commands.
const UnknownCommand = "unknown"

// Commands lists all commands in the README's order.
var Commands = []CommandRow{
	{
		Name:     "solve",
		Argument: "[text]",
		Takes:    TakesLines,
		Help:     "works on this thread, with the text as an extra instruction",
		Readme:   "work on this thread; the text is added to the task",
	},
	{
		Name:     "ask",
		Argument: "QUESTION",
		Takes:    TakesLines,
		Purpose:  ToAnswer,
		Help:     "answers in a comment; nothing is changed",
		Readme:   "an attempt that answers in a comment; its file changes are discarded",
	},
	{
		Name:     "plan",
		Argument: "[text]",
		Takes:    TakesLines,
		Purpose:  ToPlan,
		Help:     "posts a plan, which you may edit; `/pawl go [text]` carries it out",
		Readme:   "an attempt that posts a plan as a comment, which you may edit",
	},
	{
		Name:     "go",
		Argument: "[text]",
		Takes:    TakesLines,
		Readme:   "carry out the plan in its current version; the text is added",
	},
	{
		Name:     "steer",
		Argument: "TEXT",
		Takes:    TakesLines,
		Joins:    true,
		Help:     "interrupts the agent when its tool calls end, or after a minute; it continues with the text",
		Readme:   "interrupt the working agent; it continues with the text",
	},
	{
		Name:      "retry",
		Forces:    true,
		GoesOn:    true,
		Button:    "Start one more attempt",
		Page:      "Start one more attempt",
		Shell:     "Make one more attempt on a thread",
		ShellLong: "Same as the comment /pawl retry.",
		Help:      "starts one more attempt",
		Readme:    "one more attempt at the same task as the last",
	},
	{
		Name:      "stop",
		Effect:    Controls,
		Button:    "End the run",
		Page:      "End the run",
		Shell:     "Stop the work on a thread, including a running attempt",
		ShellLong: "Same as the comment /pawl stop.",
		Help:      "ends the run and a running attempt",
		Readme:    "end the running attempt and the run, within 5 seconds",
	},
	{
		Name:      "resume",
		Forces:    true,
		GoesOn:    true,
		Button:    "Go on now, do not wait",
		Page:      "Go on now; daily limits still apply",
		Shell:     "Continue a waiting or stopped thread",
		ShellLong: "Same as the comment /pawl resume. Daily limits still apply.",
		Help:      "goes on now instead of waiting; daily limits still apply",
		Readme:    "continue now: skip a wait (daily limits excepted) or restart after a stop",
	},
	{
		Name:   "raise",
		Forces: true,
		GoesOn: true,
		Button: "Allow a day's worth once more",
		Help:   "allows the thread its daily limits once more, and goes on",
		Readme: "allow the thread its daily limits once more, and continue",
	},
	{
		Name:   "escalate",
		Forces: true,
		Button: "Start one attempt with more effort",
		Help:   "starts one attempt with more effort",
		Readme: "one attempt at the backend's escalated effort",
	},
	{
		Name:     "update",
		Argument: "[text]",
		Help:     "merges the base branch into the pull request's; an agent is asked where they conflict",
		Readme:   "merge the base branch into the pull request's branch; the agent runs only if there is more to do, such as a conflict or a text in the command",
	},
	{
		Name:     "watch",
		Argument: "[text]",
		Effect:   Controls,
		Help:     "works on the pull request until its required checks are green; `/pawl unwatch` ends that",
		Readme:   "work on the pull request in [rounds](docs/verdicts.md#watching) until its required checks are green",
	},
	{
		Name:   "unwatch",
		Effect: Controls,
		Readme: "end the watch; a running attempt continues to its end",
	},
	{
		Name:     "use",
		Argument: "BACKEND",
		Takes:    TakesWord,
		Effect:   Controls,
		Help:     "takes that backend from now on",
		Readme:   "keep to one backend on this thread",
	},
	{
		Name:       "pause",
		Effect:     Pauses,
		Permission: Maintain,
		Page:       "Start no new attempts in",
		Shell:      "Pause a repository: start no new attempts",
		ShellLong:  "Running attempts continue to their end. policy.paused pauses the whole server.",
		Help:       "lets nothing begin in this repository until `/pawl unpause`; both need the maintain or admin permission",
		Readme:     "let nothing begin in this repository; needs the maintain or admin permission",
	},
	{
		Name:       "unpause",
		Effect:     Pauses,
		Permission: Maintain,
		Page:       "Let work begin again in",
		Shell:      "Continue a paused repository",
		ShellLong:  "Threads that the pause stopped continue automatically.",
		Readme:     "end the pause and continue the threads that it stopped; needs the same permission",
	},
	{
		Name:   "status",
		Effect: Answers,
		Help:   "says where things stand",
		Readme: "where the thread stands",
	},
	{
		Name:   "why",
		Effect: Answers,
		Help:   "says why the last events were or were not acted on",
		Readme: "how Pawl judged the last remarks, and why",
	},
}

func IsCommand(name string) bool { return commandAt(name) >= 0 }

// CommandNamed returns a command's row. An unknown name gives a row that answers with help; an empty one begins work.
func CommandNamed(name string) CommandRow {
	if at := commandAt(name); at >= 0 {
		return Commands[at]
	}
	if name == "" {
		return CommandRow{}
	}
	return CommandRow{Name: UnknownCommand, Effect: Answers}
}

func commandAt(name string) int {
	return slices.IndexFunc(Commands, func(c CommandRow) bool { return c.Name == name })
}

// NearestCommand returns the command closest to a mistyped word. Up to a third of its letters may differ (our choice),
// so a word of one or two letters gets no suggestion.
func NearestCommand(word string) string {
	if len(word) > maxMistyped {
		return ""
	}
	word = strings.ToLower(word)
	nearest, least := "", len(word)/3+1
	for _, c := range Commands {
		if d := distance(word, c.Name); d < least {
			nearest, least = c.Name, d
		}
	}
	return nearest
}

// maxMistyped is twice the longest command in bytes.
const maxMistyped = 16

// distance returns the optimal string alignment distance of two words.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			differ := 1
			if a[i-1] == b[j-1] {
				differ = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+differ)
			if swapped(a[:i], b[:j]) {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}

// swapped reports whether a and b end with the same two letters in opposite order.
func swapped(a, b string) bool {
	if len(a) < 2 || len(b) < 2 {
		return false
	}
	x, y := a[len(a)-2:], b[len(b)-2:]
	return x[0] == y[1] && x[1] == y[0]
}

func (c CommandRow) Usage() string {
	usage := "/pawl " + c.Name
	if c.Argument != "" {
		usage += " " + c.Argument
	}
	return usage
}
