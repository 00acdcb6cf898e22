package agent

import (
	"cmp"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// Adapter is what Pawl knows of one CLI.
type Adapter struct {
	Name, Stream string // the kind of backend, and the format of its standard output
	// Command turns a request into what to start. It reads nothing but its
	// argument. The error is ErrSession where the session cannot be continued.
	Command func(Request) (Command, error)
	// Parse turns one line of standard output, which may be cut (see maxLine) or garbage, into events. Equal
	// lines give equal events. Nil for streams without structure.
	Parse func(line []byte, emit func(Event))
	// OpenSession opens what the CLI left in HOME about a session, FoldSession reads what it tells of the last
	// turn, ParseSession one line of it. Nil for CLIs that leave nothing worth reading.
	OpenSession  func(home, session string) (io.ReadCloser, error)
	FoldSession  func(io.Reader) (Session, error)
	ParseSession func(line []byte, emit func(Event))
	// Tries matches what standard error says of requests that failed and are
	// tried again. It is nil for CLIs that tell it on standard output.
	Tries *regexp.Regexp
	// Exit names the ending of an exit code, "" for none, for failures that nothing else explains; may be nil.
	Exit func(code int) policy.Ending
	// ReadWait reads from two lines of standard error, the second of them new, that the CLI now waits before it
	// asks again, or no longer does; nil for CLIs that never wait for long.
	ReadWait func(lines string) (RetryWait, bool)
	Version  Version // the one that was checked; zero for the kind "command"
	// Unguarded are slash-separated paths below the checkout from which the CLI would run code in spite of all
	// its switches: the caller must hide them, or give it those of the base branch.
	Unguarded  []string
	Credential string // the slash-separated path below HOME of the CLI's login by account, empty for none
}

// Version is the one of a CLI that Pawl was checked with; zero asks for none. All print theirs for --version.
type Version struct {
	Checked string // the version whose switches and output Pawl was checked with
	Package string // the package that installs the CLI by npm
}

// The standings of a version that was found.
const (
	VersionChecked = "checked" // the very one that was checked
	VersionNewer   = "newer"   // it may have changed: a warning
	VersionOlder   = "older"   // it may lack the switches that keep a repository's configuration out: an error
	VersionUnknown = "unknown" // it did not tell: a warning
)

// VersionFinding is what is to be thought of the version that a CLI printed.
type VersionFinding struct {
	Found string // the version, empty where none was recognised
	Kind  string // one of the standings above
	// Text says it to a person, with what to do where something is to be done.
	Text string
}

var versionNumber = regexp.MustCompile(`(?m)(?:^|[ v])(\d{1,9})\.(\d{1,9})\.(\d{1,9})\b`)

// Judge reads what the CLI printed when it was asked for its version.
func (v Version) Judge(output string) VersionFinding {
	found := versionNumber.FindStringSubmatch(Shorten(output, 4<<10))
	checked := versionNumber.FindStringSubmatch(v.Checked)
	if found == nil || checked == nil {
		said, _, _ := strings.Cut(strings.TrimSpace(Shorten(output, 200)), "\n")
		return VersionFinding{Kind: VersionUnknown, Text: fmt.Sprintf("its version is unknown: it printed %q; %s was checked", said, v.Checked)}
	}
	s := VersionFinding{Found: strings.TrimLeft(found[0], " v")}
	switch slices.CompareFunc(found[1:], checked[1:], compareNumbers) {
	case 1:
		s.Kind, s.Text = VersionNewer, fmt.Sprintf("version %s is newer than %s, which was checked; it may have changed", s.Found, v.Checked)
	case -1:
		s.Kind, s.Text = VersionOlder, fmt.Sprintf("version %s is older than %s, which was checked, and may lack switches that Pawl relies on: npm install --global %s@%s", s.Found, v.Checked, v.Package, v.Checked)
	default:
		s.Kind, s.Text = VersionChecked, "version "+s.Found
	}
	return s
}

func compareNumbers(a, b string) int {
	m, _ := strconv.Atoi(a) // the pattern has digits only
	n, _ := strconv.Atoi(b)
	return cmp.Compare(m, n)
}
