package policy

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// Caps are the global limits on attempts in any 24 hours, over all nodes and triggers (defaults: our choice).
type Caps struct {
	PerRepositoryPerDay   int `yaml:"per_repository_per_day"`
	PerInstallationPerDay int `yaml:"per_installation_per_day"`
	PerServerPerDay       int `yaml:"per_server_per_day"`
	PerAccountPerDay      int `yaml:"per_account_per_day"` // per provider account, for all its backends
}

// Used counts attempts and their use.
type Used struct {
	Attempts int       `json:"attempts"`
	Tokens   int64     `json:"tokens"`
	USD      float64   `json:"usd"`
	First    time.Time `json:"first,omitzero"` // the oldest attempt's start; zero for none
}

// Usage sums the last 24 hours at each global level and on each account.
type Usage struct {
	Repository, Installation, Server Used
	Accounts                         map[string]Used
}

// Ledger compares one level's use in the last 24 hours with its limits. A zero limit means no limit.
type Ledger struct {
	Level string `json:"level"` // for users: "this repository"
	Used
	MaxAttempts int     `json:"max_attempts"`
	MaxTokens   int64   `json:"max_tokens"`
	MaxUSD      float64 `json:"max_usd"`
}

// Ledgers lists the global levels, narrowest first.
func (l Limits) Ledgers(u Usage) []Ledger {
	return []Ledger{
		{"this repository", u.Repository, l.Caps.PerRepositoryPerDay, l.Budget.TokensPerRepositoryPerDay, l.Budget.USDPerRepositoryPerDay},
		{"this installation of the App", u.Installation, l.Caps.PerInstallationPerDay, l.Budget.TokensPerInstallationPerDay, l.Budget.USDPerInstallationPerDay},
		{"this server", u.Server, l.Caps.PerServerPerDay, l.Budget.TokensPerServerPerDay, l.Budget.USDPerServerPerDay},
	}
}

// Account returns an account's ledger, which limits only the account's backends.
func (l Limits) Account(name string, u Usage) Ledger {
	return Ledger{"account " + name, u.Accounts[name], l.Caps.PerAccountPerDay, l.Budget.TokensPerAccountPerDay, l.Budget.USDPerAccountPerDay}
}

// Server returns the ledger of all nodes that share the database.
func (l Limits) Server(u Usage) Ledger { return l.Ledgers(u)[2] }

func usedUp[N int | int64 | float64](used, most N) bool { return most > 0 && used >= most }

// Spent describes the used-up budget; empty for none.
func (l Ledger) Spent() string {
	switch {
	case usedUp(l.Tokens, l.MaxTokens):
		return fmt.Sprintf("%s on %s in 24 hours; its budget is %s", Plural(int(l.Tokens), "token"), l.Level, humanize.Comma(l.MaxTokens))
	case usedUp(l.USD, l.MaxUSD):
		return fmt.Sprintf("%.2f USD on %s in 24 hours; its budget is %.2f", l.USD, l.Level, l.MaxUSD)
	}
	return ""
}

// Full returns why the level allows no further attempt, and the rule; empty if one is allowed.
func (l Ledger) Full() (why string, by Rule) {
	if usedUp(l.Attempts, l.MaxAttempts) {
		return fmt.Sprintf("%s on %s in 24 hours; its limit is %d", Plural(l.Attempts, "attempt"), l.Level, l.MaxAttempts), RuleCap
	}
	return l.Spent(), RuleBudget
}

func (l Ledger) String() string {
	usd, tokens := fmt.Sprintf("%.2f USD", l.USD), Plural(int(l.Tokens), "token")
	if l.MaxUSD > 0 {
		usd = fmt.Sprintf("%.2f of %.2f USD (%.2f left)", l.USD, l.MaxUSD, max(0, l.MaxUSD-l.USD))
	}
	if l.MaxTokens > 0 {
		tokens = fmt.Sprintf("%s of %s (%s left)", humanize.Comma(l.Tokens), Plural(int(l.MaxTokens), "token"), humanize.Comma(max(0, l.MaxTokens-l.Tokens)))
	}
	return fmt.Sprintf("%d of %s (%d left), %s, %s", l.Attempts, Plural(l.MaxAttempts, "attempt"), max(0, l.MaxAttempts-l.Attempts), usd, tokens)
}

// RepoUsed counts a repository's (owner/name) use by one installation and account.
type RepoUsed struct {
	Repo         string
	Installation int64
	Account      string
	Used
}

// UsageOf sums the use at the global levels of a thread in the repository.
func UsageOf(all []RepoUsed, repo string, installation int64) Usage {
	u := Usage{Accounts: map[string]Used{}}
	for _, r := range all {
		account := u.Accounts[r.Account]
		account.add(r.Used)
		u.Accounts[r.Account] = account
		if r.Repo == repo {
			u.Repository.add(r.Used)
		}
		if r.Installation == installation {
			u.Installation.add(r.Used)
		}
		u.Server.add(r.Used)
	}
	return u
}

// Without subtracts one attempt on the account.
func (u Usage) Without(account string) Usage {
	on := u.Accounts[account]
	for _, level := range []*Used{&u.Repository, &u.Installation, &u.Server, &on} {
		level.Attempts = max(0, level.Attempts-1)
	}
	u.Accounts = maps.Clone(u.Accounts)
	u.Accounts[account] = on
	return u
}

func (u *Used) add(more Used) {
	if u.First.IsZero() || more.First.Before(u.First) {
		u.First = more.First
	}
	u.Attempts, u.Tokens, u.USD = u.Attempts+more.Attempts, u.Tokens+more.Tokens, u.USD+more.USD
}

// Day lists the ledgers of the server, its accounts, and the busiest installations and repositories, up to `most` each.
func (l Limits) Day(all []RepoUsed, most int) []Ledger {
	levels := [2]map[string]Used{{}, {}} // by repository, by installation
	for _, r := range all {
		owner, _, _ := strings.Cut(r.Repo, "/")
		for i, name := range []string{r.Repo, fmt.Sprintf("installation %d of %s", r.Installation, owner)} {
			u := levels[i][name]
			u.add(r.Used)
			levels[i][name] = u
		}
	}
	of := UsageOf(all, "", 0)
	day := []Ledger{l.Server(of)}
	for _, name := range slices.Sorted(maps.Keys(of.Accounts)) {
		if name != "" { // older attempts have no account
			day = append(day, l.Account(name, of))
		}
	}
	for i, level := range slices.Backward(levels[:]) {
		var list []Ledger
		for name, used := range level {
			d := l.Ledgers(Usage{Repository: used, Installation: used})[i]
			d.Level = name
			list = append(list, d)
		}
		slices.SortFunc(list, func(a, b Ledger) int { return cmp.Or(b.Attempts-a.Attempts, strings.Compare(a.Level, b.Level)) })
		day = append(day, list[:min(len(list), most)]...)
	}
	return day
}

// Generations limits chains of issues that Pawl's own work led to.
type Generations struct {
	// Max limits a chain without a user's command. 2 is our choice: a follow-up of a follow-up.
	Max int `yaml:"max"`
}

func generations(f Facts) Decision {
	for _, t := range f.Fresh {
		if t.Generation <= f.Limits.Generations.Max {
			return Decision{}
		}
	}
	if len(f.Fresh) == 0 {
		return Decision{}
	}
	t := f.Fresh[0]
	return stop(RuleGenerations, "To have it done, comment /pawl solve.",
		fmt.Sprintf("%s, and no user asked for this or for the %s before it", t.Cause, Plural(t.Generation-1, "piece")+" of work"))
}

const hintRoom = "It goes on by itself when there is room. The operator can raise policy.caps and policy.budget; /pawl stop ends the wait."

// globalLimits waits while a global limit is reached. The end is unknown: the reason's Until is when the oldest attempt
// leaves the window.
func globalLimits(f Facts) Decision {
	for _, l := range f.GlobalLimits {
		why, by := l.Full()
		if why == "" {
			continue
		}
		reasons := Because(by, why)
		if first := l.First; !first.IsZero() {
			reasons = append(reasons, Reason{Rule: by, Text: "the oldest of its attempts leaves that window at", Until: first.Add(Day)})
		}
		return Decision{Action: DoWait, Rule: by, Reasons: reasons, Hint: hintRoom}
	}
	return Decision{}
}

// Spent is an attempt's use and the limit that it hit.
type Spent struct {
	N       int      `json:"n"` // the attempt's number
	Tokens  Tokens   `json:"tokens"`
	CostUSD *float64 `json:"cost_usd,omitempty"`
	Limit   *Limit   `json:"limit,omitempty"`
}

func (s Spent) Plus(more Spent) Spent {
	s.Tokens = s.Tokens.Plus(more.Tokens)
	if s.CostUSD != nil && more.CostUSD != nil {
		sum := *s.CostUSD + *more.CostUSD
		s.CostUSD = &sum
	} else if s.CostUSD == nil {
		s.CostUSD = more.CostUSD
	}
	return s
}
