package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
)

// protection is a branch's classic protection. Its contexts are the required status checks.
type protection struct{ contexts []string }

// Protect protects a branch and requires status checks (contexts) before a merge into it.
func (w pulls) Protect(repo, branch string, contexts ...string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err == nil {
		r.protected[branch] = &protection{contexts}
	}
	return err
}

// RequireChecks adds a ruleset that requires status checks before a merge into a branch.
func (w pulls) RequireChecks(repo, branch string, contexts ...string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err == nil {
		r.rulesets[branch] = contexts
	}
	return err
}

// AddRule adds a ruleset with one rule of the given type, without parameters.
func (w pulls) AddRule(repo, branch, kind string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err == nil {
		r.rules[branch] = append(r.rules[branch], kind)
	}
	return err
}

// ruled reports whether a ruleset has a rule for a branch.
func (r *repository) ruled(branch string) bool {
	return len(r.rulesets[branch])+len(r.rules[branch]) > 0
}

// required lists the status checks that protection and rulesets require for a merge into a branch.
func (r *repository) required(branch string) []string {
	all := slices.Clone(r.rulesets[branch])
	if p := r.protected[branch]; p != nil {
		all = append(all, p.contexts...)
	}
	return all
}

// SetStatus sets a commit status without sending a webhook. state is success, pending, failure or error.
func (w pulls) SetStatus(repo, sha, context, state string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	if r.statuses[sha] == nil {
		r.statuses[sha] = map[string]string{}
	}
	r.statuses[sha][context] = state
	return nil
}

// passes reports whether the required checks of a commit passed: check runs or commit statuses.
func (r *repository) passes(branch, sha string) bool {
	for _, name := range r.required(branch) {
		at := slices.IndexFunc(r.runs, func(run *checkRun) bool { return run.sha == sha && run.name == name && run.passed() })
		if at < 0 && r.statuses[sha][name] != "success" {
			return false
		}
	}
	return true
}

func (run *checkRun) passed() bool {
	return slices.Contains([]string{"success", "neutral", "skipped"}, run.conclusion)
}

// unstable reports whether any status or newest check run of a commit has not passed, required or not
// (GraphQL, MergeStateStatus: "Mergeable with non-passing commit status").
func (r *repository) unstable(sha string) bool {
	for _, state := range r.statuses[sha] {
		if state != "success" {
			return true
		}
	}
	seen := map[string]bool{}
	for _, run := range slices.Backward(r.runs) {
		key := fmtID(run.suite.app.id) + " " + run.name
		if run.sha != sha || seen[key] {
			continue
		}
		if !run.passed() {
			return true
		}
		seen[key] = true
	}
	return false
}

// KeepComputing keeps a pull request's mergeability unknown while on is true, as if GitHub never finished computing it.
func (w pulls) KeepComputing(repo string, number int, on bool) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	t, err := r.pull(number)
	if err == nil {
		t.pull.computes, t.pull.computed = on, false
	}
	return err
}

func (w pulls) getBranch(c *call) *reply {
	name := c.r.PathValue("branch")
	sha := c.repo.branches[name]
	if sha == "" {
		return problem(http.StatusNotFound, "Branch not found")
	}
	commits, err := c.repo.git.log(c.context(), "--no-walk", sha)
	if err != nil || len(commits) == 0 {
		return notFound()
	}
	self := w.apiOf(c.repo) + "/branches/" + name
	level, contexts := "off", []string{}
	p := c.repo.protected[name]
	if p != nil {
		level, contexts = "non_admins", append(contexts, p.contexts...)
	}
	checks := []obj{}
	for _, context := range contexts {
		checks = append(checks, obj{"context": context, "app_id": nil})
	}
	return ok(obj{
		"name": name, "commit": w.renderCommit(c.repo, commits[0]), "protected": p != nil || c.repo.ruled(name), "protection_url": self + "/protection",
		"_links": obj{"self": self, "html": fmt.Sprintf("%s/tree/%s", w.webOf(c.repo), name)},
		"protection": obj{
			"enabled":                p != nil,
			"required_status_checks": obj{"enforcement_level": level, "contexts": contexts, "checks": checks},
		},
	})
}

func (w pulls) getBranchRules(c *call) *reply {
	branch := c.r.PathValue("branch")
	rules := []obj{}
	for _, kind := range c.repo.rules[branch] {
		rules = append(rules, obj{"type": kind})
	}
	checks := []obj{}
	for _, context := range c.repo.rulesets[branch] {
		checks = append(checks, obj{"context": context})
	}
	if len(checks) > 0 {
		rules = append(rules, obj{
			"type":       "required_status_checks",
			"parameters": obj{"strict_required_status_checks_policy": false, "required_status_checks": checks},
		})
	}
	return page(c, rules, func(rule obj) obj {
		rule["ruleset_source_type"], rule["ruleset_source"], rule["ruleset_id"] = "Repository", c.repo.fullName(), 1
		return rule
	}, array)
}

// Draft converts a pull request to a draft, or ends its draft state.
func (w pulls) Draft(repo string, number int, as string, draft bool) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		if t.pull == nil || t.pull.draft == draft {
			return fmt.Errorf("%s#%d is not a pull request or already has this draft state", repo, number)
		}
		t.pull.draft, t.updated = draft, w.now()
		action := map[bool]string{true: "converted_to_draft", false: "ready_for_review"}[draft]
		w.emitThread(r, t, action, by, nil)
		return nil
	})
}
