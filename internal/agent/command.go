package agent

import (
	"fmt"
	"strconv"
)

// commandAdapter runs the operator's own program: the prompt on standard
// input, the attempt in PAWL_ variables.
func commandAdapter(stream string) (Adapter, error) {
	a := Adapter{Name: "command", Stream: stream, Command: commandCommand}
	switch stream {
	case "", StreamPlain:
		a.Stream = StreamPlain
	case StreamCodex:
		a.Parse = codexLine
	case StreamClaude:
		a.Parse = claudeLine
	case StreamGemini:
		a.Parse, a.tries, a.exit = geminiLine, geminiTries, geminiExit
	case StreamOpencode:
		a.Parse, a.tries = opencodeLine, opencodeTries
	default:
		return Adapter{}, fmt.Errorf("unknown stream %q: use plain, codex, claude, gemini or opencode", stream)
	}
	return a, nil
}

// commandCommand is the command line of the kind "command".
func commandCommand(r Request) (Command, error) {
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return Command{}, fmt.Errorf("the backend has no program: set argv to the program and its arguments")
	}
	own := map[string]string{
		"HOME":         r.Home,
		"PAWL_ATTEMPT": strconv.Itoa(r.Attempt),
		"PAWL_THREAD":  r.Thread,
		"PAWL_RUNG":    r.Rung,
		"PAWL_EFFORT":  r.Effort,
	}
	return Command{Argv: r.Argv, Env: environ(r.Env, own), Stdin: r.Prompt}, nil
}
