package agent

import (
	"fmt"
	"regexp"
	"strings"
)

// SessionDeeds reads the calls of a session from the session file, which holds
// the patches that the output leaves out. Where the CLI keeps no such file it
// visits nothing; a missing file is an fs.ErrNotExist.
func (a Adapter) SessionDeeds(home, session, dir string, visit func(Deed)) error {
	if a.openSession == nil || a.parseSession == nil {
		return nil
	}
	f, err := a.openSession(home, session)
	if err != nil {
		return fmt.Errorf("open the session file: %w", err)
	}
	defer f.Close()
	t := newTally(a, dir)
	t.onDeed = visit
	err = readLines(f, func(line []byte) { a.parseSession(line, t.add) })
	t.settle()
	if err != nil {
		return fmt.Errorf("read the session file: %w", err)
	}
	return nil
}

// codexCallEdits are the edits of a call in the session file: the patches in
// the arguments, whether apply_patch is a tool of its own or a shell command.
func codexCallEdits(arguments string) []Edit {
	if !strings.Contains(arguments, "*** Begin Patch") {
		return nil
	}
	if text := stringOf(member([]byte(arguments), "input")); text != "" {
		return patchEdits(text)
	}
	command := member([]byte(arguments), "command")
	if command == nil {
		command = member([]byte(arguments), "cmd")
	}
	if text := stringOf(command); text != "" {
		return patchEdits(text)
	}
	var all []Edit
	elements(command, func(word []byte) {
		edits := patchEdits(stringOf(word))
		all = append(all, edits[:min(len(edits), maxEdits-len(all))]...)
	})
	if command == nil {
		return patchEdits(arguments) // a free-form tool
	}
	return all
}

// codexExit matches the exit code of a command in what the model was told of it.
var codexExit = regexp.MustCompile(`"exit_code":\s*(-?\d+)|(?:Exit code:|Process exited with code) (-?\d+)`)

// codexAnswer is the end of a call in the session file.
func codexAnswer(payload []byte) Event {
	output := member(payload, "output")
	text := stringOf(output)
	if text == "" {
		text = string(output)
	}
	e := Event{Kind: ToolCall, ID: stringOf(member(payload, "call_id")), Done: true}
	if m := codexExit.FindStringSubmatch(text); m != nil && m[1]+m[2] != "0" {
		e.fail(true, output)
		// A patch that could not be applied changed nothing, and a command that
		// failed may have changed something; it has no edits unless it is a patch.
		e.Rejected = true
	}
	return e
}
