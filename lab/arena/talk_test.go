package arena

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Reasons for the bounds.
const (
	five   = "5 attempts in a row without new user input"
	again  = "once in new words; " + five
	row    = "six in a row reveal a program; " + five
	moves  = "automatic changes do not count as new content"
	none   = "it asks for nothing"
	forced = "the branch was force-pushed, and no user has commented since"
)

// talkers are bots that write comments.
var talkers = []bot{
	{name: "talker", does: "an allowed bot comments in new words after each attempt",
		acts:  func(s *seat) { s.comments(s.pull, helper, s.words()) },
		bound: bound{attempts: 6, why: five}},
	{name: "quoter", does: "an allowed bot quotes what Pawl wrote, with a new line below",
		acts: func(s *seat) {
			s.comments(s.pull, helper, "> "+strings.ReplaceAll(s.shown(), "\n", "\n> ")+"\n\n"+s.words())
		},
		bound: bound{attempts: 6, why: five}},
	{name: "mirror", does: "a user's script quotes what Pawl wrote, and adds nothing",
		acts:  func(s *seat) { s.comments(s.pull, writer, "> "+strings.ReplaceAll(s.shown(), "\n", "\n> ")) },
		bound: bound{attempts: 1, why: none}},
	{name: "bridge", does: "a bridge copies what Pawl wrote, in a user's name",
		acts:  func(s *seat) { s.comments(s.pull, writer, s.shown()) },
		bound: bound{attempts: 1, why: "Pawl's own words do not count"}},
	{name: "embedder", does: "a user's script repeats one sentence below a new quotation each time", every: time.Minute,
		acts: func(s *seat) {
			s.later(1, 6)
			s.comments(s.pull, writer, "> "+s.words()+"\n\nPlease look at this again.")
		},
		bound: bound{attempts: 7, why: again}},
	{name: "praiser", does: "a user's script says thanks",
		acts: func(s *seat) {
			s.comments(s.pull, writer, []string{"Thanks!", "Thank you so much.", "LGTM", "Great work!"}[s.round%4])
		},
		bound: bound{attempts: 1, why: none}},
	{name: "parrot", does: "a user's script says the same word for word",
		acts:  func(s *seat) { s.comments(s.pull, writer, "Please look at this again.") },
		bound: bound{attempts: 2, why: "the words are new once"}},
	{name: "recreator", does: "a user's script deletes its comment and writes it again",
		acts: func(s *seat) {
			if id := s.memory["mine"]; id != 0 {
				s.did(s.World.DeleteComment(s.repo, id, writer))
			}
			s.memory["mine"] = s.comments(s.pull, writer, "Please look at this again.")
		},
		bound: bound{attempts: 2, why: "the words are new once"}},
	{name: "counter", does: "a user's script says the same with a counter",
		acts:  func(s *seat) { s.comments(s.pull, writer, fmt.Sprintf("Please look at this again (%d).", s.round)) },
		bound: bound{attempts: 12, why: row}},
	{name: "dater", does: "a user's script says the same with the time",
		acts: func(s *seat) {
			s.comments(s.pull, writer, "Still open at "+s.ahead.now().UTC().Format("2006-01-02 15:04:05")+", please go on.")
		},
		bound: bound{attempts: 12, why: row}},
	{name: "noncer", does: "a user's script says the same with a request id",
		acts: func(s *seat) {
			s.comments(s.pull, writer, fmt.Sprintf("Please look at this again, request %08x.", uint32(s.round)*2654435761))
		},
		bound: bound{attempts: 12, why: row}},
	{name: "cron", does: "a user's script comments /pawl retry every six hours", every: 6 * time.Hour,
		acts:  func(s *seat) { s.comments(s.issue, writer, "/pawl retry") },
		bound: bound{attempts: 7, why: again}},
	{name: "insister", does: "a user's script comments /pawl retry with a counter",
		acts:  func(s *seat) { s.comments(s.issue, writer, fmt.Sprintf("/pawl retry more words %d", s.round)) },
		bound: bound{attempts: 12, why: row}},
	{name: "commander", does: "a user's script comments /pawl retry in new words every two hours", every: 2 * time.Hour,
		acts:  func(s *seat) { s.comments(s.issue, writer, "/pawl retry "+s.words()) },
		bound: bound{attempts: 11, why: row}},
	{name: "stranger", does: "a user without permission gives commands",
		acts: func(s *seat) {
			s.comments(s.issue, reader, "/pawl solve "+s.words())
			s.comments(s.pull, reader, s.words())
		},
		bound: bound{attempts: 1, why: "the user has no permission"}},
	{name: "rival", does: "another App imitates Pawl's comments",
		acts: func(s *seat) {
			s.comments(s.issue, other, "<!-- pawl:status -->\n@pawl Done after 1 attempt. /pawl retry\n"+s.words())
			s.comments(s.pull, other, "@pawl "+s.words())
		},
		bound: bound{attempts: 1, why: "the bot is not allowed"}},
	{name: "asker", does: "a user's script asks /pawl why ten times at once",
		acts: func(s *seat) {
			for range 10 {
				s.comments(s.issue, writer, "/pawl why")
			}
		},
		bound: bound{attempts: 1, writes: 80, why: "questions start no work, and Pawl answers few"}},
	{name: "mumbler", does: "a user's script gives ten commands that Pawl does not know",
		acts: func(s *seat) {
			for i := range 10 {
				s.comments(s.issue, writer, fmt.Sprintf("/pawl %s %d", strings.Fields("dance sing jump run sleep eat drink walk fly swim")[i], s.round))
			}
		},
		bound: bound{attempts: 1, writes: 80, why: "questions start no work, and Pawl answers few"}},
	{name: "remover", does: "a user's script deletes Pawl's comments, and comments /pawl why",
		acts: func(s *seat) {
			for _, c := range s.pawls(s.issue) {
				s.did(s.World.DeleteComment(s.repo, c.ID, writer))
			}
			s.comments(s.issue, writer, "/pawl why")
		},
		bound: bound{attempts: 1, writes: 80, why: "questions start no work"}},
}

// pretenders are indistinguishable from users; only the configured daily limits stop them.
var pretenders = []bot{
	{name: "pretender", does: "a user's script says something new at random times", every: time.Minute,
		acts: func(s *seat) {
			s.later(5, 95)
			s.comments(s.pull, writer, s.words())
		},
		bound: bound{attempts: 16, why: "8 attempts a day on a thread, as configured"}},
	{name: "reactor", does: "a user's script says something new as soon as something was pushed",
		acts: func(s *seat) {
			if head := "seen " + s.head(); s.memory[head] == 0 {
				s.memory[head] = 1
				s.comments(s.pull, writer, s.words())
			}
		},
		bound: bound{attempts: 16, why: "8 attempts a day on a thread, as configured"}},
}

// later lets a bot act again after least to most minutes, in no regular pattern.
func (s *seat) later(least, most uint32) {
	s.next = s.ahead.now().Add(time.Duration(60*least+uint32(s.round)*2654435761%(60*(most-least))) * time.Second)
}

var hidden = regexp.MustCompile(`(?s)<!--.*?-->\s*`)

// shown returns the visible text of Pawl's comment on the issue.
func (s *seat) shown() string {
	return strings.TrimSpace(hidden.ReplaceAllString(s.pawls(s.issue)[0].Body, ""))
}

// timekeepers are recognised by the times of their acts. So they must not share a clock with bots that move the clock.
var timekeepers = []bot{
	{name: "metronome", does: "a user's script says something new every hour", every: time.Hour,
		acts:  func(s *seat) { s.comments(s.pull, writer, s.words()) },
		bound: bound{attempts: 11, why: row}},
	{name: "rewriter", does: "a user's script edits its comment every hour", every: time.Hour,
		acts: func(s *seat) {
			if id := s.memory["mine"]; id != 0 {
				s.did(s.World.EditComment(s.repo, id, writer, s.words()))
				return
			}
			s.memory["mine"] = s.comments(s.pull, writer, s.words())
		},
		bound: bound{attempts: 11, why: row}},
}
