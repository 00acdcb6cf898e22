package policy

import (
	"cmp"
	"encoding/json"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// minPause is the shortest pause between two equal calls that counts as polling (issue 40).
const minPause = 10 * time.Second

// parsedCall is a shell command, or a tool with arguments.
type parsedCall struct {
	tool      string
	arguments map[string]any // nil for none
	command   string
}

func readCall(text string) parsedCall {
	s := parsedCall{tool: text}
	at := strings.Index(text, "{")
	if at < 0 || json.Unmarshal([]byte(text[at:]), &s.arguments) != nil {
		s.command = text // also a truncated call
		return s
	}
	s.tool = text[:at]
	for _, key := range []string{"command", "cmd"} {
		switch v := s.arguments[key].(type) {
		case string:
			s.command = v
		case []any:
			s.command = joined(v)
		}
	}
	return s
}

// CallName returns the call's command, else its text, for users.
func CallName(text string) string { return cmp.Or(readCall(text).command, text) }

// waits reports whether the call's text shows a wait of at least minPause.
func (s parsedCall) waits() bool {
	if s.command != "" {
		return commandWaits(s.command)
	}
	return toolWaits(s.tool, s.arguments)
}

// looks reports whether the call is a tool that reads a file.
func (s parsedCall) looks() bool {
	if s.command != "" {
		return false
	}
	for key := range s.arguments {
		if slices.ContainsFunc(parts(key), func(word string) bool { return word == "path" || word == "file" }) {
			return true
		}
	}
	return false
}

func joined(list []any) string {
	var words []string
	for _, v := range list {
		s, _ := v.(string)
		if strings.ContainsAny(s, " ;&|\n") {
			s = "'" + s + "'"
		}
		words = append(words, s)
	}
	return strings.Join(words, " ")
}

// toolWaits reports whether a tool's name or argument means waiting, unless the duration is shorter than minPause.
func toolWaits(tool string, arguments map[string]any) bool {
	named := saysWait(tool)
	for key, v := range arguments {
		tellsPause := saysWait(key) || named && slices.ContainsFunc(parts(key), isTime)
		switch v := v.(type) {
		case float64:
			if tellsPause {
				return pauseOf(key, v) >= minPause
			}
		case bool:
			if v && (saysWait(key) || key == "block") {
				return true
			}
		}
	}
	return named
}

// isTime reports whether a word of an argument's name means a duration.
func isTime(word string) bool {
	return slices.Contains([]string{"time", "duration", "seconds", "secs", "ms", "milliseconds", "minutes"}, word)
}

// pauseOf returns an argument's duration. Its name or size gives the unit.
func pauseOf(key string, n float64) time.Duration {
	unit := time.Second
	words := parts(key)
	switch {
	case slices.Contains(words, "minutes"):
		unit = time.Minute
	case slices.Contains(words, "ms"), slices.Contains(words, "milliseconds"), slices.Contains(words, "millis"), n >= maxSeconds:
		unit = time.Millisecond
	}
	return time.Duration(n * float64(unit))
}

// A duration of maxSeconds or more without a unit is in milliseconds (our choice).
const maxSeconds = 1000

func saysWait(name string) bool {
	return slices.ContainsFunc(parts(name), func(word string) bool {
		return slices.Contains([]string{"wait", "waits", "await", "watch", "sleep", "poll", "delay", "yield", "monitor"}, word)
	})
}

// parts splits a name in any case: waitFor, wait_for and Wait-For give wait and for.
func parts(name string) []string {
	var b strings.Builder
	var before rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		before = r
		if !unicode.IsLetter(r) {
			r = ' '
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.Fields(b.String())
}

// commandWaits reports whether a shell command sleeps for minPause or in a loop, or one of its programs waits or
// watches.
func commandWaits(command string) bool {
	var pause time.Duration
	loops := false
	for _, simple := range simpleCommands(command) {
		for len(simple) > 0 && simple[0].leads() {
			loops = loops || simple[0].loops()
			simple = simple[1:]
		}
		if len(simple) == 0 {
			continue
		}
		slept := sleep(simple)
		if loops && slept > 0 {
			return true
		}
		pause += slept
		if watches(simple) {
			return true
		}
	}
	return pause >= minPause
}

type word struct {
	text   string
	quoted bool
}

// leads reports whether the word precedes a program: a keyword, an assignment, or a program that runs another one.
func (w word) leads() bool {
	if !w.quoted && preamble.MatchString(w.text) {
		return true
	}
	return w.loops() || slices.Contains([]string{
		"do", "then", "else", "elif", "if", "!", "time", "timeout", "exec", "command", "sudo", "nohup", "env",
	}, w.text)
}

func (w word) loops() bool { return slices.Contains([]string{"while", "until", "for"}, w.text) }

var (
	// preamble matches an assignment or timeout's duration.
	preamble = regexp.MustCompile(`^(?:\w+=.*|[\d.]+[smhd]?)$`)
	// interpreter matches programs that take quoted code.
	interpreter = regexp.MustCompile(`(?:sh|shell)$|^(?:python|pypy|node|perl|ruby|php|deno|bun)`)
	sleepCall   = regexp.MustCompile(`\bsleep\s*\(?\s*([\d.]+)\b`)
	sleepTime   = regexp.MustCompile(`^([\d.]+)([smhd]?)$`)
)

var sleepUnits = map[string]time.Duration{"": time.Second, "s": time.Second, "m": time.Minute, "h": time.Hour, "d": Day}

// sleep returns how long a program sleeps, from its arguments; 0 if unknown.
func sleep(simple []word) (d time.Duration) {
	switch strings.ToLower(path.Base(simple[0].text)) {
	case "sleep", "start-sleep":
		for _, w := range simple[1:] {
			if m := sleepTime.FindStringSubmatch(w.text); m != nil {
				d += times(m[1], sleepUnits[m[2]])
			}
		}
		return d
	}
	if !interpreter.MatchString(path.Base(simple[0].text)) {
		return 0
	}
	for _, w := range simple[1:] {
		if !w.quoted {
			continue
		}
		if commandWaits(w.text) {
			return minPause
		}
		for _, m := range sleepCall.FindAllStringSubmatch(w.text, -1) {
			d += times(m[1], time.Second)
		}
	}
	return d
}

func times(n string, unit time.Duration) time.Duration {
	f, _ := strconv.ParseFloat(n, 64) // 0 if n is not a number
	return time.Duration(min(f, 1e6) * float64(unit))
}

// watches reports whether a program waits, or gets a subcommand or option to wait.
func watches(simple []word) bool {
	if runsScript(simple) {
		simple = simple[1:]
	}
	if tellsToWait(path.Base(simple[0].text)) {
		return true
	}
	subcommands := true
	for _, w := range simple[1:] {
		option := strings.HasPrefix(w.text, "-")
		subcommands = subcommands && !option && !w.quoted
		switch {
		case w.text == "--wait", w.text == "--watch", w.text == "--wait=true", w.text == "--watch=true":
			return true
		case subcommands && tellsToWait(w.text) && !strings.ContainsAny(w.text, "./"):
			return true
		}
	}
	return false
}

func runsScript(simple []word) bool {
	if len(simple) < 2 || !interpreter.MatchString(path.Base(simple[0].text)) {
		return false
	}
	return !simple[1].quoted && !strings.HasPrefix(simple[1].text, "-")
}

// tellsToWait reports whether a word of a program's name means waiting.
func tellsToWait(name string) bool {
	return slices.ContainsFunc(parts(name), func(word string) bool {
		return slices.Contains([]string{"wait", "await", "watch", "poll"}, word)
	})
}

// simpleCommands splits a shell command at its operators. Quoted text stays one word.
func simpleCommands(command string) (all [][]word) {
	var simple []word
	var text strings.Builder
	var quote rune
	quoted := false
	endWord := func() {
		if text.Len() > 0 {
			simple = append(simple, word{text.String(), quoted})
		}
		text.Reset()
		quoted = false
	}
	for _, r := range command {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			text.WriteRune(r)
		case r == '\'' || r == '"':
			quote = r
			quoted = true
		case strings.ContainsRune(";&|\n(){}`", r):
			endWord()
			all = append(all, simple)
			simple = nil
		case unicode.IsSpace(r):
			endWord()
		default:
			text.WriteRune(r)
		}
	}
	endWord()
	return append(all, simple)
}
