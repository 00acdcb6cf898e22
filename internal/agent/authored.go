package agent

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"
	"strings"
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
	m := newMatcher(remark)
	if a.Parse == nil {
		return m.plain(transcript)
	}
	return m.read(transcript, a.Parse)
}

// AuthoredInSession answers the same from the session file, which also holds
// the patches that the output leaves out: a remark may be posted from a file.
// It answers false where the CLI keeps no such file.
func (a Adapter) AuthoredInSession(home, session, remark string) (bool, error) {
	if a.openSession == nil {
		return false, nil
	}
	f, err := a.openSession(home, session)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("open the session file: %w", err)
	}
	defer f.Close()
	return newMatcher(remark).read(f, a.parseSession)
}

// errFound ends a search early.
var errFound = errors.New("found")

// matcher looks for one remark in a stream of text, with the memory of the
// remark alone (Knuth, Morris and Pratt).
type matcher struct {
	short   bool
	pattern []byte // the remark's words, with a space before each and after the last
	next    []int
	at      int
	found   bool
}

func newMatcher(remark string) *matcher {
	if len(remark) > maxRemark {
		remark = remark[:maxRemark]
	}
	m := &matcher{short: utf8.RuneCountInString(strings.TrimSpace(remark)) < shortRemark}
	words(remark, func(b byte) bool { m.pattern = append(m.pattern, b); return true })
	if len(m.pattern) <= 1 { // nothing but punctuation: nothing to recognise it by
		m.pattern = nil
		return m
	}
	m.next = make([]int, len(m.pattern))
	for i, k := 1, 0; i < len(m.pattern); i++ {
		for k > 0 && m.pattern[i] != m.pattern[k] {
			k = m.next[k-1]
		}
		if m.pattern[i] == m.pattern[k] {
			k++
		}
		m.next[i] = k
	}
	return m
}

// feed takes one byte of the searched text and reports whether to go on.
func (m *matcher) feed(b byte) bool {
	for m.at > 0 && m.pattern[m.at] != b {
		m.at = m.next[m.at-1]
	}
	if m.pattern[m.at] == b {
		m.at++
	}
	if m.at == len(m.pattern) {
		m.found = true
	}
	return !m.found
}

// read searches what the events of a stream say that the agent wrote.
func (m *matcher) read(r io.Reader, parse func([]byte, func(Event))) (bool, error) {
	if m.pattern == nil {
		return false, nil
	}
	err := readLines(&stopper{r, &m.found}, func(line []byte) {
		parse(line, func(e Event) {
			if m.found || e.Wrote == "" || m.short && !(e.Ran && posting.MatchString(e.Wrote)) {
				return
			}
			m.at = 0
			words(e.Wrote, m.feed)
		})
	})
	return m.result(err)
}

// plain searches every line; a remark may go over several.
func (m *matcher) plain(r io.Reader) (bool, error) {
	if m.pattern == nil {
		return false, nil
	}
	err := readLines(&stopper{r, &m.found}, func(line []byte) {
		if m.found {
			return
		}
		if m.short && !posting.Match(line) {
			return
		}
		first := true
		words(string(line), func(b byte) bool {
			if first && m.at > 0 {
				m.at-- // the space that ended the line before is the one that begins this one
			}
			first = false
			return m.feed(b)
		})
	})
	return m.result(err)
}

func (m *matcher) result(err error) (bool, error) {
	if err != nil && !errors.Is(err, errFound) {
		return m.found, fmt.Errorf("search what the agent wrote: %w", err)
	}
	return m.found, nil
}

// stopper ends a stream once the search has succeeded.
type stopper struct {
	io.Reader
	found *bool
}

func (s *stopper) Read(p []byte) (int, error) {
	if *s.found {
		return 0, errFound
	}
	return s.Reader.Read(p)
}
