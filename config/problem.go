package config

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a configuration file. It holds what a
// check-run annotation needs.
type Problem struct {
	// File is the name that the file was parsed under.
	File string
	// Line counts from 1. It is never 0.
	Line int
	// Column counts from 1; 0 means that it is not known.
	Column int
	// Key is the path of the key, such as policy.restarts.max or
	// backends[0].name; empty when the file as a whole is wrong.
	Key string
	// Message says what is wrong and what to do. It never holds a secret.
	Message string
}

// String is the problem as file:line:column: key: message.
func (p Problem) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d", p.File, p.Line)
	if p.Column > 0 {
		fmt.Fprintf(&b, ":%d", p.Column)
	}
	b.WriteString(": ")
	if p.Key != "" {
		b.WriteString(p.Key + ": ")
	}
	b.WriteString(p.Message)
	return b.String()
}

// Problems is the error that Parse and Load return for a file that can be read
// but not used: everything that was found, in the order of the file.
type Problems []Problem

// Error is one problem a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, problem := range p {
		lines[i] = problem.String()
	}
	return strings.Join(lines, "\n")
}
