package replay

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

type entry struct {
	thread.Event
	// Echo means that a wrapper reported the remark. Once policy has stopped, the remark may concern attempts that
	// policy would have prevented.
	Echo bool
	// Untimed means that the recording has no time for the event; At gives only the order.
	Untimed bool
}

// decided is one recorded attempt with policy's decision after it.
type decided struct {
	policy.Receipt
	Started, Ended time.Time
	Untimed        bool
	Notes          []string
	// Avoided means that policy would not have started the attempt; Decision prevented it.
	Avoided  bool
	Decision policy.Decision
}

// playBack runs policy on a recording. Policy's decisions replace the recorded ones, so avoided attempts do not
// affect later decisions.
func playBack(entries []entry, cfg config.Server) ([]decided, error) {
	p := player{
		cfg:    cfg,
		starts: map[int]decided{},
		shared: shared{
			breakers:  map[string]policy.Breaker{},
			cooldowns: map[string]policy.Cooldown{},
		},
	}
	for _, e := range entries {
		if e.Kind != thread.KindAttemptStarted {
			continue
		}
		var a thread.Started
		if err := json.Unmarshal(e.Data, &a); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
		}
		p.shared.knows(a, cfg)
	}
	for _, e := range entries {
		if err := p.take(e); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
		}
	}
	if _, err := p.decide(p.at); err != nil {
		return nil, err
	}
	return p.out, nil
}

type player struct {
	cfg  config.Server
	kept []thread.Event
	at   time.Time
	// dirty means that events were kept since the last decision.
	dirty bool
	// avoiding means that the recording has continued after policy stopped.
	avoiding bool
	shared   shared
	last     policy.Decision
	starts   map[int]decided // unfinished attempts
	out      []decided
}

// take handles one event. Simultaneous events are decided together.
func (p *player) take(e entry) error {
	if p.dirty && p.separate(e) {
		if _, err := p.decide(p.at); err != nil {
			return err
		}
	}
	p.at = e.At
	switch e.Kind {
	case thread.KindDecision:
		return p.recorded(e.Event)
	case thread.KindAttemptStarted:
		return p.start(e)
	case thread.KindAttemptEnded:
		return p.end(e)
	case thread.KindFeedback:
		if e.Echo && p.avoiding {
			return nil
		}
		p.avoiding = false
	}
	p.keep(e.Event)
	return nil
}

func (p *player) separate(e entry) bool {
	switch e.Kind {
	case thread.KindAttemptStarted, thread.KindDecision:
		return true
	}
	return e.At.After(p.at)
}

func (p *player) keep(e thread.Event) {
	p.kept = append(p.kept, e)
	p.dirty = true
}

func (p *player) put(kind thread.Kind, seq int64, at time.Time, data any) error {
	b, err := json.Marshal(data)
	if err != nil {
		return err
	}
	p.keep(thread.Event{Seq: seq, Kind: kind, At: at, Data: b})
	return nil
}

// decide calls policy if there is something to decide, and returns the state.
func (p *player) decide(now time.Time) (thread.State, error) {
	st, err := thread.Fold(p.kept)
	if err != nil {
		return st, err
	}
	if _, running := st.Running(); running || !st.Open() {
		p.dirty = false
		return st, nil
	}
	p.last = policy.Next(p.shared.facts(st, now, p.cfg))
	p.tell()
	if p.last.Action != policy.DoAttempt {
		err = p.put(thread.KindDecision, st.Seq, now, thread.Decided{Decision: p.last, Seen: st.Seq})
	}
	p.dirty = false
	return st, err
}

// tell assigns the last decision to the previous attempt.
func (p *player) tell() {
	if len(p.out) == 0 {
		return
	}
	a := &p.out[len(p.out)-1]
	if a.Avoided {
		return
	}
	before := a.Decision
	if before.Rule == p.last.Rule && before.Action == p.last.Action {
		if before.Action == policy.DoAttempt {
			a.Decision = p.last
		}
		return
	}
	a.Decision = p.last
	if before.Rule != "" {
		note := fmt.Sprintf("before that: %s by %s", before.Action, before.Rule)
		if len(before.Reasons) > 0 {
			note += ", " + before.Reasons[0].String()
		}
		a.Notes = append(a.Notes, note)
	}
}

// recorded handles a recorded decision. It keeps the decision only if it ended a run that policy would continue: then
// the repository's configuration or a failure of Pawl's own was the cause.
func (p *player) recorded(e thread.Event) error {
	var d thread.Decided
	if err := json.Unmarshal(e.Data, &d); err != nil {
		return err
	}
	st, err := thread.Fold(p.kept)
	if err != nil {
		return err
	}
	switch d.Action {
	case policy.DoStop, policy.DoDone, policy.DoAsk:
	default:
		return nil
	}
	if _, running := st.Running(); running || !st.Open() {
		return nil
	}
	if p.last.Action == policy.DoAttempt {
		p.keep(e)
		p.last = d.Decision
		p.tell()
		p.dirty = false
	}
	return nil
}

func (p *player) start(e entry) error {
	var a thread.Started
	if err := json.Unmarshal(e.Data, &a); err != nil {
		return err
	}
	d := decided{Started: e.At, Untimed: e.Untimed}
	st, err := p.decide(e.At)
	if err != nil {
		return err
	}
	p.avoiding = !st.Open() || !p.attempts()
	if p.avoiding {
		d.Avoided = true
		d.Decision = p.last
		p.starts[a.N] = d
		return nil
	}
	p.starts[a.N] = d
	if p.last.Lifts {
		p.shared.cooldowns[p.last.Backend] = policy.Lifted(e.At)
	}
	a.Run = st.Run
	if a.Decision.Rule == "" {
		a.Decision = p.last
	}
	return p.put(thread.KindAttemptStarted, e.Seq, e.At, a)
}

// attempts reports whether the last decision leads to an attempt. A backoff only delays the attempt. After other waits,
// the recorded attempt would not have started at its time.
func (p *player) attempts() bool {
	switch p.last.Action {
	case policy.DoAttempt:
		return true
	case policy.DoWait:
		return p.last.Rule == policy.RuleBackoff
	default:
		return false
	}
}

func (p *player) end(e entry) error {
	var r policy.Receipt
	if err := json.Unmarshal(e.Data, &r); err != nil {
		return err
	}
	d, begun := p.starts[r.N]
	if !begun {
		return fmt.Errorf("attempt %d ended without a start", r.N)
	}
	delete(p.starts, r.N)
	d.Receipt, d.Ended = r, e.At
	if !d.Avoided {
		p.keep(e.Event)
		st, err := thread.Fold(p.kept)
		if err != nil {
			return err
		}
		f := p.shared.facts(st, e.At, p.cfg)
		if n := len(f.Attempts); n > 0 {
			p.shared.end(f.Attempts[n-1], f.Limits)
		}
	}
	p.out = append(p.out, d)
	return nil
}

// shared is the state shared by threads, as if this thread were the only one.
type shared struct {
	breakers  map[string]policy.Breaker
	cooldowns map[string]policy.Cooldown
	arms      []policy.Backend // the recording's backends, without limits
}

func (s *shared) knows(a thread.Started, cfg config.Server) {
	i := slices.IndexFunc(s.arms, func(b policy.Backend) bool { return b.Name == a.Backend })
	if i < 0 {
		i = len(s.arms)
		s.arms = append(s.arms, policy.Backend{Name: a.Backend, Account: a.Account})
	}
	configured := slices.ContainsFunc(cfg.Backends, func(b config.Backend) bool {
		return b.Name == a.Backend && b.EscalatedEffort != ""
	})
	if configured || a.Decision.Escalated {
		s.arms[i].CanEscalate = true
	}
}

func (s *shared) end(a policy.Attempt, l policy.Limits) {
	s.breakers[a.Account] = s.breakers[a.Account].After(a.Ending, a.Limit.Usable(), a.StartedAt, a.EndedAt)
	if v := l.Severity.Loop(a.Receipt); v.Class != policy.None {
		s.cooldowns[a.Backend] = policy.Cooldown{Class: v.Class, At: a.EndedAt, Until: a.EndedAt.Add(v.Cooldown)}.After(s.cooldowns[a.Backend])
	}
}

func (s *shared) facts(st thread.State, now time.Time, cfg config.Server) policy.Facts {
	// Problems are ignored: this configuration was not written for this server.
	effective, _ := cfg.Narrow(st.Repo)
	f := st.Facts(now)
	f.Limits = effective.Policy.Limits
	for _, arm := range s.arms {
		arm.Breaker = s.breakers[arm.Account]
		if r := s.cooldowns[arm.Name]; r.Holds(now) {
			arm.Cooldown = r
		}
		f.Backends = append(f.Backends, arm)
	}
	return f
}
