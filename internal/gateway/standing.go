package gateway

import (
	"regexp"
	"strings"
)

// standing is what a session knows of the limits of its models. Calls are
// numbered as they begin, so that an answer tells what of it is over.
type standing struct {
	calls    int64            // begun so far
	answered map[string]int64 // by model, the last call that got an answer
	limit    *Limit
	model    string // that the limit was met with
	call     int64  // that met it
}

// maxAnswered bounds the models whose answers are remembered. Agents use two or
// three; one that makes names up gets no more.
const maxAnswered = 64

// begin numbers a call.
func (s *standing) begin() int64 {
	s.calls++
	return s.calls
}

// refused takes a limit down. It answers false where the limit says nothing of
// this attempt: another model was meant, or a call that began later is answered.
func (s *standing) refused(g Grant, model string, call int64, l Limit, ofAccount bool) bool {
	if !ofAccount && !g.means(model) {
		return false
	}
	for other, at := range s.answered {
		if at > call && (other == model || g.means(other)) {
			return false
		}
	}
	s.limit, s.model, s.call = &l, model, call
	return true
}

// answers notes that the bytes of an answer arrive, after which a limit that an
// earlier call met is over. A small model's answer says nothing of the model
// that the attempt was given.
func (s *standing) answers(g Grant, model string, call int64) {
	if s.answered == nil {
		s.answered = map[string]int64{}
	}
	if _, known := s.answered[model]; known || len(s.answered) < maxAnswered {
		s.answered[model] = max(s.answered[model], call)
	}
	if s.limit != nil && call > s.call && (model == s.model || g.means(model)) {
		s.limit = nil
	}
}

// alias matches a model's name without a version, as Claude Code and Gemini CLI
// take them: sonnet, flash, flash-lite.
var alias = regexp.MustCompile(`^[a-z]+(?:-[a-z]+)*$`)

// means reports whether a model is the one that the attempt was given. Names
// that leave the choice to the agent mean every model.
func (g Grant) means(model string) bool {
	want, got := strings.ToLower(g.Model), strings.ToLower(model)
	want, _, _ = strings.Cut(want, "[") // opus[1m] is opus
	switch want {
	case "", "auto", "default", "opusplan", got:
		return true
	}
	for _, pair := range [][2]string{{want, got}, {got, want}} {
		if rest, ok := strings.CutPrefix(pair[0], pair[1]); ok && dated.MatchString(rest) {
			return true
		}
	}
	if !alias.MatchString(want) {
		return false
	}
	at := strings.LastIndex("-"+got, "-"+want)
	return at >= 0 && afterAlias.MatchString(got[at+len(want):])
}

// afterAlias is what follows an alias within a model's name: a version, a date,
// or nothing. flash-lite is not flash.
var afterAlias = regexp.MustCompile(`^(?:-\d[\d.-]*)?(?:-(?:preview|latest|exp)[\w.-]*)?$`)
