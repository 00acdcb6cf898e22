package fakegithub

import (
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"
)

// world is everything that GitHub remembers. Server.mu guards it.
type world struct {
	app           *app
	otherApps     map[string]*app
	accounts      map[string]*account    // by lower-case login
	repos         map[string]*repository // by lower-case full name, former names included
	installations []*installation
	tokens        map[string]*token
	manifests     []Manifest // as they were submitted
	codes         map[string]manifestCode
	lastID        int64
	began         time.Time
}

type account struct {
	id    int64
	login string
	kind  string // User, Organization or Bot
}

type app struct {
	id          int64
	slug        string
	owner       *account
	bot         *account
	permissions map[string]string
	events      []string
	created     time.Time
}

type installation struct {
	id        int64
	account   *account
	repos     map[int64]bool
	suspended time.Time
	created   time.Time
	removed   bool
}

type repository struct {
	id            int64
	owner         *account
	name          string
	defaultBranch string
	created       time.Time
	pushed        time.Time
	deleted       bool
	public        bool
	parent        *repository // what it was forked from, nil for most
	protected     []string    // branches that take no pushes
	git           bare
	pushing       sync.Mutex        // taken before Server.mu, so that a push is one person's
	roles         map[string]string // by lower-case login: read, triage, write, maintain, admin
	branches      map[string]string // name to commit
	threads       []*thread         // number n at n-1
	runs          []*checkRun
	suites        []*checkSuite
	pushes        []Push
}

// thread is an issue or, with pull set, a pull request.
type thread struct {
	id        int64
	number    int
	title     string
	body      string
	author    *account
	via       *app
	state     string // open or closed
	reason    string // state_reason of a closed issue
	created   time.Time
	updated   time.Time
	closed    time.Time
	labels    []string
	assignees []*account
	comments  []*comment
	reactions []reaction
	pull      *pull
}

type pull struct {
	id       int64
	draft    bool
	from     *repository // where the head is: the repository itself or a fork
	headRef  string
	headSHA  string
	baseRef  string
	baseSHA  string
	mergedAt time.Time
	mergedBy *account
	mergeSHA string
	diff     comparison // against the base as it is now
	reviews  []*review
	comments []*reviewComment
}

type comment struct {
	id        int64
	author    *account
	via       *app
	body      string
	created   time.Time
	updated   time.Time
	reactions []reaction
}

type review struct {
	id        int64
	author    *account
	body      string
	state     string // APPROVED, CHANGES_REQUESTED or COMMENTED
	commit    string
	submitted time.Time
}

type reviewComment struct {
	comment
	review int64
	path   string
	line   int
	hunk   string
	commit string
}

type reaction struct {
	id      int64
	user    *account
	content string
	created time.Time
}

func newWorld(o Options, now time.Time) world {
	w := world{otherApps: map[string]*app{}, accounts: map[string]*account{}, repos: map[string]*repository{},
		tokens: map[string]*token{}, codes: map[string]manifestCode{}, lastID: 3_000_000_000, began: now} // above 2^31, as GitHub's ids are
	w.app = w.newApp(o.AppID, o.Slug, o.Permissions, now)
	if o.Events != nil {
		w.app.events = o.Events
	}
	return w
}

// newID gives ids that are unique over all kinds, so a mix-up of kinds shows.
func (w *world) newID() int64 {
	w.lastID++
	return w.lastID
}

func (w *world) newApp(id int64, slug string, permissions map[string]string, now time.Time) *app {
	bot := &account{id: w.newID(), login: slug + "[bot]", kind: "Bot"}
	w.accounts[strings.ToLower(bot.login)] = bot
	events := []string{"check_run", "create", "delete", "issue_comment", "issues", "pull_request", "pull_request_review",
		"pull_request_review_comment", "push", "repository"}
	return &app{id: id, slug: slug, bot: bot, permissions: permissions, events: events, created: now,
		owner: &account{id: w.newID(), login: slug + "-owner", kind: "Organization"}}
}

func (w *world) account(login string) (*account, error) {
	if a := w.accounts[strings.ToLower(login)]; a != nil {
		return a, nil
	}
	return nil, fmt.Errorf("no account %q: call AddUser first", login)
}

// repo finds a repository that exists under this or a former name.
func (w *world) repo(full string) (*repository, error) {
	if r := w.repos[strings.ToLower(full)]; r != nil && !r.deleted {
		return r, nil
	}
	return nil, fmt.Errorf("no repository %q: call AddRepo first", full)
}

// installationOf returns the live installation that covers r, or nil.
func (w *world) installationOf(r *repository) *installation {
	for _, in := range w.installations {
		if !in.removed && in.repos[r.id] {
			return in
		}
	}
	return nil
}

func (w *world) installationByID(id int64) *installation {
	for _, in := range w.installations {
		if in.id == id && !in.removed {
			return in
		}
	}
	return nil
}

// reposOf lists the repositories of an installation by id.
func (w *world) reposOf(in *installation) []*repository {
	seen := map[int64]*repository{}
	for _, r := range w.repos {
		if in.repos[r.id] && !r.deleted {
			seen[r.id] = r
		}
	}
	list := make([]*repository, 0, len(seen))
	for _, r := range seen {
		list = append(list, r)
	}
	sort.Slice(list, func(i, j int) bool { return list[i].id < list[j].id })
	return list
}

func (r *repository) fullName() string { return r.owner.login + "/" + r.name }

func (r *repository) thread(number int) (*thread, error) {
	if number < 1 || number > len(r.threads) {
		return nil, fmt.Errorf("no issue or pull request %s#%d", r.fullName(), number)
	}
	return r.threads[number-1], nil
}

func (r *repository) pull(number int) (*thread, error) {
	t, err := r.thread(number)
	if err != nil {
		return nil, err
	}
	if t.pull == nil {
		return nil, fmt.Errorf("%s#%d is an issue, not a pull request", r.fullName(), number)
	}
	return t, nil
}

// role is what a person may do here: none, read, triage, write, maintain or
// admin. Everybody reads a public repository.
func (r *repository) role(a *account) string {
	if a.id == r.owner.id {
		return "admin"
	}
	role := r.roles[strings.ToLower(a.login)]
	switch {
	case r.public && rank(role) < rank("read"):
		return "read"
	case role == "":
		return "none"
	}
	return role
}

// visibility is "public" or "private".
func (r *repository) visibility() string {
	if r.public {
		return "public"
	}
	return "private"
}
