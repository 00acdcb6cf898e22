package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxBytes is the size from which a file is refused unread. A configuration
// with a hundred backends stays under 64 KiB.
const maxBytes = 1 << 20

// yamlLine finds the line in the error texts of the YAML library, which have
// no structure.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parseDocument reads the one document of a file. An empty file gives nil.
func parseDocument(name string, data []byte) (*yaml.Node, *Problem) {
	if len(data) > maxBytes {
		return nil, &Problem{File: name, Line: 1, Message: fmt.Sprintf("is %d bytes long; a configuration may have %d", len(data), maxBytes)}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var doc, second yaml.Node
	if err := decoder.Decode(&doc); errors.Is(err, io.EOF) {
		return nil, nil
	} else if err != nil {
		return nil, syntaxProblem(name, err)
	}
	if err := decoder.Decode(&second); err == nil {
		return nil, &Problem{File: name, Line: max(second.Line, 1), Column: second.Column,
			Message: "starts a second YAML document; remove it and the --- before it"}
	} else if !errors.Is(err, io.EOF) {
		return nil, syntaxProblem(name, err)
	}
	return doc.Content[0], nil
}

func syntaxProblem(name string, err error) *Problem {
	text := err.Error()
	match := yamlLine.FindStringSubmatch(text)
	line := 1
	if match != nil {
		text = strings.TrimPrefix(text, match[0])
		if n, convErr := strconv.Atoi(match[1]); convErr == nil && n > 0 {
			line = n
		}
	}
	return &Problem{File: name, Line: line,
		Message: fmt.Sprintf("is not valid YAML: %s; check the indentation, colons and quotes around this line", text)}
}
