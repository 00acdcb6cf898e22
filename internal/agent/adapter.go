package agent

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Request says what an agent shall do and where. It holds no secrets except
// those that the operator listed for the backend in Env.
type Request struct {
	Prompt string
	// Dir is the checkout as the agent sees it; the caller starts the process there.
	Dir string
	// Home is the agent's own HOME as the agent sees it.
	Home string
	// Model and Effort are passed on where the CLI knows them; empty means its default.
	Model, Effort string
	// Session names an earlier session of the same CLI and HOME to continue; empty starts afresh.
	Session string
	// Argv is the program with its first arguments. Empty means the CLI's own
	// name, looked up on PATH; the kind "command" needs it.
	Argv []string
	// Env is the environment that the operator allows, PATH included.
	Env map[string]string
	// Endpoint is where the CLI finds its model: a proxy on loopback and the
	// token for it. The zero value means that the CLI signs in by itself, by
	// variables in Env or by the credential file in HOME. The kind "command" gets
	// it in PAWL_ variables.
	Endpoint Endpoint
	// TestTool is the command line of a stdio MCP server that offers the tool
	// run_tests; empty for none. The kind "command" is not told of it.
	TestTool []string
	// Attempt, Thread and Rung are told to agents of the kind "command".
	Attempt      int
	Thread, Rung string
}

// Command is what to start. Argv is never handed to a shell.
type Command struct {
	Argv []string
	// Env is the whole environment, as NAME=value, sorted.
	Env []string
	// Stdin is written to the process and then closed: an open standard input
	// makes some CLIs wait for ever.
	Stdin string
	// Files are written below HOME before the start, by slash-separated relative path.
	Files map[string]string
}

// ErrSession says that Request.Session is not of the form that the CLI gives its
// sessions. The same request without it starts afresh.
var ErrSession = errors.New("start afresh")

func badSession(cli, session string) error {
	return fmt.Errorf("%q is no session of %s: %w", session, cli, ErrSession)
}

// Adapter is what Pawl knows of one CLI.
type Adapter struct {
	// Name is the kind of backend, Stream the format of its standard output.
	Name, Stream string
	// Command turns a request into what to start. It reads nothing but its
	// argument. The error is ErrSession where the session cannot be continued.
	Command func(Request) (Command, error)
	// Parse turns one line of standard output into events. The line may be cut
	// (see maxLine) and may be garbage. Equal lines give equal events. It is nil
	// for streams without structure.
	Parse func(line []byte, emit func(Event))
	// ReadSession reads what the CLI left in HOME about a session. It is nil
	// for CLIs that leave nothing worth reading.
	ReadSession func(home, session string) (Session, error)
	// openSession opens that file to search it for what the agent wrote, and
	// parseSession reads one line of it.
	openSession  func(home, session string) (sessionFile, error)
	parseSession func(line []byte, emit func(Event))
	// tries matches what standard error says of requests that failed and are
	// tried again. It is nil for CLIs that tell it on standard output.
	tries *regexp.Regexp
	// exit names the ending of an exit code, "" where it tells nothing, for
	// failures that nothing else explains. It is nil where no code does.
	exit func(code int) Ending
	// asleep reads from two lines of standard error, the second of them new, that
	// the CLI now waits before it asks its provider again, or no longer does. It
	// is nil for CLIs that never wait for long.
	asleep func(lines string) (nap, bool)
	// Version is how to ask for the CLI's version and which one was checked. The
	// zero value, of the kind "command", asks for none.
	Version Version
	// Unguarded are slash-separated paths below the checkout from which the CLI
	// would run code of the repository in spite of all its switches. The caller
	// must hide them from it, or give it those of the base branch.
	Unguarded []string
	// Credential is the slash-separated path below HOME of the file that holds
	// the CLI's login by account, empty where it has none.
	Credential string
}

// The formats of standard output.
const (
	StreamPlain    = "plain"
	StreamCodex    = "codex"
	StreamClaude   = "claude"
	StreamGemini   = "gemini"
	StreamOpencode = "opencode"
)

// For returns the adapter of a backend kind ("codex", "command"). The stream
// matters for the kind "command" only, where it says how standard output is to
// be read; empty means plain there.
func For(kind, stream string) (Adapter, error) {
	switch kind {
	case "codex":
		return codexAdapter(), nil
	case "claude":
		return claudeAdapter(), nil
	case "gemini":
		return geminiAdapter(), nil
	case "opencode":
		return opencodeAdapter(), nil
	case "command":
		return commandAdapter(stream)
	}
	return Adapter{}, fmt.Errorf("unknown backend kind %q: use codex, claude, gemini, opencode or command", kind)
}

// ForStream returns the adapter that reads transcripts of one format.
func ForStream(stream string) (Adapter, error) {
	switch stream {
	case "", StreamPlain:
		return Adapter{Name: "command", Stream: StreamPlain, Command: commandCommand}, nil
	case StreamCodex, StreamClaude, StreamGemini, StreamOpencode:
		return For(stream, "")
	}
	return Adapter{}, fmt.Errorf("unknown stream %q: use plain, codex, claude, gemini or opencode", stream)
}

// program is the CLI's own name, or what the backend puts in its place.
func program(r Request, name string) []string {
	if len(r.Argv) == 0 {
		return []string{name}
	}
	return slices.Clone(r.Argv)
}

// usual are the variables that a CLI gets unless the operator sets them. TZ is
// UTC because codex prints reset times in the local zone without naming it.
var usual = map[string]string{"TZ": "UTC", "LANG": "C.UTF-8", "TERM": "dumb"}

// environ lists an environment in the form that exec wants, sorted so that
// equal requests give equal commands. Later maps win.
func environ(layers ...map[string]string) []string {
	all := map[string]string{}
	for _, layer := range layers {
		maps.Copy(all, layer)
	}
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}
