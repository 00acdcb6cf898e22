package arena

import (
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

const ladder = "3 attempts for failing checks of other apps"

// editors are bots that change titles and descriptions.
var editors = []bot{
	{name: "stamper", does: "a script writes the time into the description",
		acts:  func(s *seat) { s.describes("Updated: " + s.ahead.now().UTC().Format(time.RFC3339)) },
		bound: bound{attempts: 2, why: "the line is new once; " + moves}},
	{name: "viewer", does: "a script updates a counter in the description",
		acts:  func(s *seat) { s.describes(fmt.Sprintf("Views: %d", s.round)) },
		bound: bound{attempts: 2, why: "a number that changes once may be a user's edit; " + moves}},
	{name: "hasher", does: "a script writes the last build into the description",
		acts:  func(s *seat) { s.describes(fmt.Sprintf("Build: 5a1e%08x", uint32(s.round)*2654435761)) },
		bound: bound{attempts: 2, why: "the line is new once; " + moves}},
	{name: "ticker", does: "a script ticks and unticks a box",
		acts:  func(s *seat) { s.describes([]string{"- [ ] done", "- [x] done"}[s.round%2]) },
		bound: bound{attempts: 2, why: "the line is new once; " + moves}},
	{name: "flipper", does: "a script switches the description between two texts",
		acts:  func(s *seat) { s.describes([]string{"Take the first way.", "Take the second way."}[s.round%2]) },
		bound: bound{attempts: 3, why: "each of two texts counts once"}},
	{name: "novelist", does: "a user's script adds a sentence to the description",
		acts:  func(s *seat) { s.describes(s.words()) },
		bound: bound{attempts: 6, why: five}},
	{name: "retitler", does: "a script changes the title and the assignee",
		acts: func(s *seat) {
			s.did(s.World.EditTitle(s.repo, s.issue, writer, s.words()))
			s.did(s.World.TouchIssue(s.repo, s.issue, writer))
			s.did(s.World.EditBody(s.repo, s.issue, writer, "Please add a second line to a.txt."))
		},
		bound: bound{attempts: 1, why: none}},
}

// checkers are bots that report on commits, and press buttons.
var checkers = []bot{
	{name: "breaker", does: "a check fails again after each push",
		acts:  func(s *seat) { s.fails("ci", "build", "The build failed: wheel.go:3: undefined: spring.") },
		bound: bound{attempts: 4, why: ladder}},
	{name: "inventor", does: "a new check of another App fails each time, with new annotations",
		acts: func(s *seat) {
			s.fails([]string{"ci", "lint"}[s.round%2], "job "+s.words(), "", fakegithub.CheckAnnotation{Path: "a.txt", Line: 1, Message: s.words()})
		},
		bound: bound{attempts: 4, why: ladder}},
	{name: "flaky", does: "a check fails after every second push",
		acts: func(s *seat) {
			if s.round%2 == 0 {
				s.reports("ci", fakegithub.CheckResult{Name: "build", Conclusion: "success"})
				s.comments(s.pull, helper, s.words())
				return
			}
			s.fails("ci", "build", "A test failed: "+s.words())
		},
		bound: bound{attempts: 6, why: five}},
	{name: "unpaid", does: "jobs do not start because of unpaid bills",
		acts: func(s *seat) {
			s.fails("ci", fmt.Sprint("job ", s.round), "", fakegithub.CheckAnnotation{Path: ".github", Line: 1,
				Message: "The job was not started because recent account payments have failed or your spending limit needs to be increased. Please check the 'Billing & plans' section in your settings"})
		},
		bound: bound{attempts: 1, why: "the cause is outside the change"}},
	{name: "rerunner", does: "a script re-runs Pawl's check run",
		acts: func(s *seat) {
			run, _ := s.button("")
			s.did(s.World.Rerequest(s.repo, run.ID, writer))
		},
		bound: bound{attempts: 7, why: again}},
	{name: "presser", does: "a script presses every button that it finds",
		acts: func(s *seat) {
			run, _ := s.button("")
			for _, a := range run.Actions {
				s.did(s.World.ClickButton(s.repo, run.ID, a.Identifier, writer))
			}
			s.did(s.World.Rerequest(s.repo, run.ID, writer))
		},
		bound: bound{attempts: 8, why: "two buttons once each; " + five}},
	{name: "robot", does: "an allowed bot presses Retry",
		acts: func(s *seat) {
			run, _ := s.button("")
			s.did(s.World.Rerequest(s.repo, run.ID, helper))
		},
		bound: bound{attempts: 6, why: five}},
}

// reviewers are bots that review each push.
var reviewers = []bot{
	{name: "nitpicker", does: "an allowed bot requests the same changes with one word changed",
		acts: func(s *seat) {
			s.reviews(helper, "CHANGES_REQUESTED", fmt.Sprintf("Please rename the %s function of the wheel, since its name says nothing of what it does.",
				strings.Fields("first second third fourth fifth sixth seventh eighth ninth tenth")[s.round%10]))
		},
		bound: bound{attempts: 6, why: five}},
	{name: "finder", does: "an allowed bot requests changes with new findings",
		acts:  func(s *seat) { s.reviews(helper, "CHANGES_REQUESTED", s.words()+" "+sentence(s.round+40)) },
		bound: bound{attempts: 6, why: five}},
	{name: "fault-finder", does: "a user's script finds something new every 20 minutes", every: 20 * time.Minute,
		acts:  func(s *seat) { s.reviews(writer, "CHANGES_REQUESTED", s.words()) },
		bound: bound{attempts: 6, why: five}},
	{name: "liner", does: "an allowed bot remarks on three lines at once",
		acts: func(s *seat) {
			for i := range 3 {
				_, err := s.World.ReviewComment(s.t.Context(), s.repo, s.pull, helper, "file1.txt", 1, sentence(3*s.round+i))
				s.did(err)
			}
		},
		bound: bound{attempts: 6, why: five}},
	{name: "approver", does: "a user's script approves",
		acts:  func(s *seat) { s.reviews(writer, "APPROVED", []string{"LGTM", "", "Looks good to me!"}[s.round%3]) },
		bound: bound{attempts: 1, why: none}},
}

// describes puts a line below the issue's description.
func (s *seat) describes(line string) {
	s.t.Helper()
	s.did(s.World.EditBody(s.repo, s.issue, writer, "Please add a second line to a.txt.\n\n"+line))
}

func (s *seat) reviews(who, state, text string) {
	s.t.Helper()
	_, err := s.World.Review(s.repo, s.pull, who, state, text)
	s.did(err)
}
