package fakegithub

import (
	"cmp"
	"crypto/rsa"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// world is GitHub's state with the means to change it and to send events.
type world struct {
	renderer
	now          func() time.Time
	dir          string          // holds the bare repositories
	gits         atomic.Int64    // git processes; see bare
	key          *rsa.PrivateKey // the App's key
	secret       string
	clientSecret string
	webhooks     *webhooks
	changed      notifier

	mu            sync.Mutex // guards everything below
	app           *app
	otherApps     map[string]*app
	accounts      map[string]*account    // by lower-case login
	repos         map[string]*repository // by lower-case full name, also former names
	installations []*installation
	tokens        map[string]*token
	manifests     []Manifest // as submitted
	codes         map[string]manifestCode
	hookRanges    []string         // published sources of webhooks
	grants        map[string]grant // logins by code
	attached      [][]byte         // in order of upload
	lastID        int64
}

// The server's parts. Each has its REST operations and the users' acts on the same objects.
type (
	people       struct{ *world } // accounts and roles
	credentials  struct{ *world } // tokens and callers
	apps         struct{ *world } // Apps and installations
	repositories struct{ *world } // repositories and their contents
	pushes       struct{ *world } // commits and moved branches
	issues       struct{ *world } // issues and labels, also of pull requests
	comments     struct{ *world } // comments and reactions
	pulls        struct{ *world } // pull requests and reviews
	checks       struct{ *world } // check runs and their buttons
	readers      struct{ *world } // for tests and the demo
)

// Other parts need these: a pull request is also an issue, and many acts move a branch.
func (w *world) issues() issues { return issues{w} }

func (w *world) pushes() pushes { return pushes{w} }

func (w *world) apps() apps { return apps{w} }

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
	callbacks   []string // login callback URLs
	created     time.Time
}

type installation struct {
	app       *app
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
	public        bool                         // private unless Publish is called
	upToDate      bool                         // a rule: pull requests must contain their base
	protected     map[string]*protection       // by branch
	rulesets      map[string][]string          // required status checks by branch
	rules         map[string][]string          // types of other ruleset rules by branch
	statuses      map[string]map[string]string // states of commit statuses by commit and context
	git           *bare
	pushing       sync.Mutex        // taken before world.mu: one push at a time
	roles         map[string]string // by lower-case login: read, triage, write, maintain, admin
	branches      map[string]string // name to commit
	threads       []*thread         // thread n is at index n-1
	runs          []*checkRun
	suites        []*checkSuite
	pushes        []Push
	comparisons   map[string]comparison // by base...head
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
	reason    string // state_reason of an issue
	created   time.Time
	updated   time.Time
	closed    time.Time
	labels    []string
	assignees []*account
	edited    time.Time // last edit of the description; zero for never
	events    []issueEvent
	comments  []*comment
	reactions []reaction
	pull      *pull
}

type pull struct {
	id       int64
	draft    bool
	headRef  string
	headSHA  string
	baseRef  string
	baseSHA  string
	mergedAt time.Time
	mergedBy *account
	mergeSHA string
	diff     comparison // compared with the current base
	computes bool       // GitHub never finishes computing mergeability
	computed bool       // mergeability is shown; true from the second request after a change
	reviews  []*review
	asked    []*account // requested reviewers
	comments []*reviewComment
}

// issueEvent is a labeled, unlabeled or renamed event.
type issueEvent struct {
	id       int64
	event    string
	actor    *account
	at       time.Time
	label    string
	from, to string
}

type comment struct {
	id        int64
	author    *account
	via       *app
	body      string
	created   time.Time
	updated   time.Time
	editor    *account // the last editor; nil for none
	reactions []reaction
}

type review struct {
	id        int64
	author    *account
	body      string
	state     string // APPROVED, CHANGES_REQUESTED, COMMENTED or DISMISSED
	reactions []reaction
	commit    string
	submitted time.Time
}

type reviewComment struct {
	comment
	review   int64
	path     string
	line     int
	hunk     string
	commit   string
	answers  int64 // the thread's first comment; zero for that comment itself
	resolved bool
}

type reaction struct {
	id      int64
	user    *account
	content string
	created time.Time
}

func newWorld(o Options, key *rsa.PrivateKey) *world {
	w := &world{renderer: renderer{began: o.Now()}, now: o.Now, key: key, secret: o.WebhookSecret, clientSecret: randomText(30), grants: map[string]grant{},
		otherApps: map[string]*app{}, accounts: map[string]*account{}, repos: map[string]*repository{},
		tokens: map[string]*token{}, codes: map[string]manifestCode{}, lastID: 3_000_000_000} // above 2^31, like GitHub's ids
	w.app = w.newApp(o.AppID, o.Slug, o.Permissions, w.now())
	if o.Events != nil {
		w.app.events = o.Events
	}
	return w
}

// newID returns ids that are unique across all kinds, so that tests notice mixed-up ids.
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

// repo finds an existing repository by a current or former name.
func (w *world) repo(full string) (*repository, error) {
	if r := w.repos[strings.ToLower(full)]; r != nil && !r.deleted {
		return r, nil
	}
	return nil, fmt.Errorf("no repository %q: call AddRepo first", full)
}

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

func (w *world) reposOf(in *installation) []*repository {
	var list []*repository
	for _, r := range w.repos {
		if in.repos[r.id] && !r.deleted && !slices.Contains(list, r) { // renamed repositories occur twice
			list = append(list, r)
		}
	}
	slices.SortFunc(list, func(a, b *repository) int { return cmp.Compare(a.id, b.id) })
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

// role is a user's role here: none, read, triage, write, maintain or admin.
func (r *repository) role(a *account) string {
	if a.id == r.owner.id {
		return "admin"
	}
	return cmp.Or(r.roles[strings.ToLower(a.login)], "none")
}

// act locks the world for a user's act; call done after it.
func (w *world) act() (done func()) {
	w.mu.Lock()
	return func() {
		w.mu.Unlock()
		w.changed.ring()
	}
}

// on finds the objects of a user's act. It checks no permissions: tests choose what users do.
func (w *world) on(repo string, number int, login string) (*repository, *thread, *account, error) {
	r, err := w.repo(repo)
	if err != nil {
		return nil, nil, nil, err
	}
	t, err := r.thread(number)
	if err != nil {
		return nil, nil, nil, err
	}
	by, err := w.account(login)
	return r, t, by, err
}

// actOn performs a user's act on an issue or pull request.
func (w *world) actOn(repo string, number int, as string, do func(*repository, *thread, *account) error) error {
	defer w.act()()
	r, t, by, err := w.on(repo, number, as)
	if err != nil {
		return err
	}
	return do(r, t, by)
}

// addThread creates an issue; a pull request is one with pull set.
func (w *world) addThread(r *repository, author *account, via *app, title, body string) *thread {
	now := w.now()
	t := &thread{id: w.newID(), number: len(r.threads) + 1, title: title, body: body, author: author, via: via,
		state: "open", created: now, updated: now}
	r.threads = append(r.threads, t)
	return t
}

func (w *world) setState(r *repository, t *thread, state, reason string, by *account) {
	t.state, t.updated, t.closed, t.reason = state, w.now(), w.now(), ""
	action := "closed"
	if state == "open" {
		t.closed, action = time.Time{}, "reopened"
	}
	if t.pull == nil {
		t.reason = reason
		if state == "open" {
			t.reason = "reopened"
		}
	}
	w.emitThread(r, t, action, by, nil)
}
