package agent

import (
	"fmt"
	"strconv"
)

// commandAdapter runs the operator's own program: the prompt on standard
// input, the attempt in PAWL_ variables. Its output is read as that of a CLI.
func commandAdapter(stream string) (Adapter, error) {
	cli, err := ForStream(stream)
	if err != nil {
		return Adapter{}, err
	}
	return Adapter{Name: "command", Stream: cli.Stream, Command: commandCommand,
		Parse: cli.Parse, tries: cli.tries, exit: cli.exit, asleep: cli.asleep}, nil
}

// commandCommand is the command line of the kind "command". An endpoint reaches
// it by the variables that the client libraries look at.
func commandCommand(r Request) (Command, error) {
	if len(r.Argv) == 0 || r.Argv[0] == "" {
		return Command{}, fmt.Errorf("the backend has no program: set argv to the program and its arguments")
	}
	if err := r.Endpoint.check("a command", ProtocolOpenAI, ProtocolAnthropic, ProtocolGemini); err != nil {
		return Command{}, err
	}
	own := map[string]string{
		"HOME":         r.Home,
		"PAWL_ATTEMPT": strconv.Itoa(r.Attempt),
		"PAWL_THREAD":  r.Thread,
		"PAWL_RUNG":    r.Rung,
		"PAWL_EFFORT":  r.Effort,
	}
	return Command{Argv: r.Argv, Env: environ(r.allowed(), r.Endpoint.variables(), own), Stdin: r.Prompt}, nil
}
