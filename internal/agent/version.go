package agent

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Version says how to ask a CLI for its version, and with which one Pawl was
// checked. The zero value asks for none.
type Version struct {
	// Args are the arguments that print the version.
	Args []string
	// Checked is the version whose switches and output Pawl was checked with.
	Checked string
	// Package is the package that installs the CLI by npm.
	Package string
}

// The standings of a version that was found.
const (
	VersionChecked = "checked" // the very one that was checked
	VersionNewer   = "newer"   // it may have changed: a warning
	VersionOlder   = "older"   // it may lack the switches that keep a repository's configuration out: an error
	VersionUnknown = "unknown" // it did not tell: a warning
)

// Standing is what is to be thought of the version that a CLI printed.
type Standing struct {
	// Found is the version, empty where none was recognised.
	Found string
	// Kind is one of the standings above.
	Kind string
	// Text says it to a person, with what to do where something is to be done.
	Text string
}

var versionNumber = regexp.MustCompile(`(?m)(?:^|[ v])(\d{1,9})\.(\d{1,9})\.(\d{1,9})\b`)

// Judge reads what the CLI printed when it was asked for its version.
func (v Version) Judge(output string) Standing {
	found := versionNumber.FindStringSubmatch(shorten(output, 4<<10))
	checked := versionNumber.FindStringSubmatch(v.Checked)
	if found == nil || checked == nil {
		said, _, _ := strings.Cut(strings.TrimSpace(shorten(output, 200)), "\n")
		return Standing{Kind: VersionUnknown, Text: fmt.Sprintf("its version is unknown: it printed %q; %s was checked", said, v.Checked)}
	}
	s := Standing{Found: strings.TrimLeft(found[0], " v")}
	for i := range 3 {
		has, _ := strconv.Atoi(found[i+1])
		want, _ := strconv.Atoi(checked[i+1])
		switch {
		case has > want:
			s.Kind, s.Text = VersionNewer, fmt.Sprintf("version %s is newer than %s, which was checked; it may have changed", s.Found, v.Checked)
			return s
		case has < want:
			s.Kind, s.Text = VersionOlder, fmt.Sprintf("version %s is older than %s, which was checked, and may lack switches that Pawl relies on: npm install --global %s@%s", s.Found, v.Checked, v.Package, v.Checked)
			return s
		}
	}
	s.Kind, s.Text = VersionChecked, "version "+s.Found
	return s
}
