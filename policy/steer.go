package policy

import (
	"fmt"
	"slices"
	"strings"
)

// MaxSteers limits the texts by which users steer one attempt. Our choice.
const MaxSteers = 10

// Steering holds the facts about a /pawl steer command when it arrives.
type Steering struct {
	Running bool // an attempt with an agent runs
	Before  int  // texts that the attempt received before
}

// Steer says where the text of a /pawl steer command goes. Unless the running agent receives it, the text is feedback
// like any other.
type Steer string

const (
	SteerAgent  Steer = "agent"  // the running agent receives the text
	SteerIdle   Steer = "idle"   // no attempt with an agent runs
	SteerFull   Steer = "full"   // the attempt received MaxSteers texts before
	SteerMissed Steer = "missed" // the agent ended before it received the text
)

// Decide returns where the text goes.
func (s Steering) Decide() Steer {
	switch {
	case !s.Running:
		return SteerIdle
	case s.Before >= MaxSteers:
		return SteerFull
	}
	return SteerAgent
}

// NeedsReply reports whether to reply to the writer, because the text did not have the expected effect.
func (s Steer) NeedsReply() bool { return s == SteerFull || s == SteerMissed }

// Steerer is a user who steered an attempt.
type Steerer struct {
	By    string `json:"by"`
	Times int    `json:"times"`
}

// CountSteers counts the texts of each user, in the order of their first text.
func CountSteers(logins []string) (all []Steerer) {
	for _, login := range logins {
		i := slices.IndexFunc(all, func(s Steerer) bool { return s.By == login })
		if i < 0 {
			i = len(all)
			all = append(all, Steerer{By: login})
		}
		all[i].Times++
	}
	return all
}

// SteeredBy says who steered the attempt and how often; empty for nobody. name formats a login.
func (r Receipt) SteeredBy(name func(login string) string) string {
	var all []string
	for _, s := range r.Steered {
		all = append(all, fmt.Sprintf("%s (%s)", name(s.By), Plural(s.Times, "time")))
	}
	return strings.Join(all, ", ")
}
