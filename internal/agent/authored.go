package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// shortRemark is the length in characters below which a remark must stand in
// a command that posts: "done" or "LGTM" stands in any session by chance.
const shortRemark = 16

// maxRemark bounds how much of a remark is compared.
const maxRemark = 64 << 10

// posting matches commands and calls that write to GitHub.
var posting = regexp.MustCompile(`(?i)\bgh\s|\bcurl\b|comments?\b|\bgithub\b`)

// Authored reports whether a remark's text stands in what the agent itself
// wrote in a transcript: its commands, tool arguments, patches and messages; in
// plain streams every line. What tools printed does not count, so a person's
// comment that the agent merely read is not the agent's.
//
// White space, punctuation, quoting and escapes are ignored, because a remark
// goes through JSON, a shell and a here-document before it is posted.
func (a Adapter) Authored(transcript io.Reader, remark string) (bool, error) {
	return authored(transcript, a.Parse, remark)
}

// AuthoredInSession answers the same from the session file, which also holds
// the patches that the output leaves out: a remark may be posted from a file.
// It answers false where the CLI keeps no such file.
func (a Adapter) AuthoredInSession(home, session, remark string) (found bool, err error) {
	err = a.inSession(home, session, func(f io.Reader) error {
		found, err = authored(f, a.ParseSession, remark)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return found, err
}

// authored searches what the events of a stream say that the agent authored. Without a
// parser that is every line, and a remark may go over several.
func authored(r io.Reader, parse func([]byte, func(Event)), remark string) (found bool, err error) {
	short := utf8.RuneCountInString(strings.TrimSpace(remark)) < shortRemark
	wanted := words(remark[:min(len(remark), maxRemark)])
	if wanted == "" {
		return false, nil // nothing but punctuation
	}
	var plain []byte // the words of the last lines
	look := func() {
		found = found || bytes.Contains(plain, []byte(wanted))
		plain = append(plain[:0], plain[max(0, len(plain)-len(wanted)):]...)
	}
	err = ReadLines(r, func(line []byte) {
		switch {
		case found:
		case parse != nil:
			parse(line, func(e Event) {
				if !short || e.Ran && posting.MatchString(e.Authored) {
					found = found || strings.Contains(words(e.Authored), wanted)
				}
			})
		case !short || posting.Match(line):
			plain = append(bytes.TrimSuffix(plain, []byte(" ")), words(string(line))...)
			if len(plain) > 4*maxRemark {
				look()
			}
		}
	})
	look()
	if err != nil {
		return found, fmt.Errorf("search what the agent wrote: %w", err)
	}
	return found, nil
}

// words are the words of a text in lower case, with one space before each and
// one after the last. A word is a run of letters and digits; everything else
// separates words, escapes other than \uXXXX included.
func words(text string) string {
	text = strings.ToLower(escapes.ReplaceAllStringFunc(text, unescaped))
	all := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(all) == 0 {
		return ""
	}
	return " " + strings.Join(all, " ") + " "
}

// escapes are those of JSON and of shells, however many backslashes the layers of
// quoting put before them. A character may be written as a pair of surrogates.
var escapes = regexp.MustCompile(`\\+(?:[nrt]|(?:u([dD][89abAB][0-9a-fA-F]{2})\\+)?u([0-9a-fA-F]{4}))?`)

// unescaped is the character that an escape names, a space for what is none.
func unescaped(escape string) string {
	m := escapes.FindStringSubmatch(escape)
	if m[2] == "" {
		return " "
	}
	first, _ := strconv.ParseUint(m[1], 16, 16) // 0 where there is none
	last, _ := strconv.ParseUint(m[2], 16, 16)
	if utf16.IsSurrogate(rune(last)) {
		return string(utf16.DecodeRune(rune(first), rune(last)))
	}
	return string(rune(last))
}
