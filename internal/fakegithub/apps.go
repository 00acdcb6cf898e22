package fakegithub

import (
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

func (w apps) getApp(c *call) *reply {
	body := w.renderApp(w.app)
	body["installations_count"] = len(w.installations)
	return ok(body)
}

func (w apps) listInstallations(c *call) *reply {
	var live []*installation
	for _, in := range w.installations {
		if !in.removed {
			live = append(live, in)
		}
	}
	return page(c, live, w.renderInstallation, array)
}

func (w apps) getInstallation(c *call) *reply {
	in := w.installationOf(c.repo)
	if in == nil {
		return notFound()
	}
	return ok(w.renderInstallation(in))
}

// maxTokenRepos: "Up to 500 repositories can be listed in this manner".
const maxTokenRepos = 500

func (w credentials) createToken(c *call) *reply {
	in := w.installationByID(c.id())
	if in == nil {
		return notFound()
	}
	if !in.suspended.IsZero() {
		return problem(http.StatusForbidden, "This installation has been suspended")
	}
	var want struct {
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	tok := &token{installation: in, permissions: want.Permissions, expires: w.now().Add(tokenLife), value: newInstallationToken()}
	if bad := w.narrow(tok, want.Permissions); bad != nil {
		return bad
	}
	if n := len(want.RepositoryIDs); n > maxTokenRepos {
		return invalid(fmt.Sprintf("No more than %d items are allowed; %d were supplied.", maxTokenRepos, n))
	}
	body := obj{"token": tok.value, "expires_at": stamp(tok.expires), "permissions": tok.permissions, "repository_selection": "selected"}
	if len(want.RepositoryIDs) > 0 {
		tok.repos = map[int64]bool{}
		rendered := []obj{}
		for _, r := range w.reposOf(in) {
			if slices.Contains(want.RepositoryIDs, r.id) {
				tok.repos[r.id] = true
				rendered = append(rendered, w.renderRepo(r))
			}
		}
		if len(tok.repos) < len(want.RepositoryIDs) {
			return problem(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
		body["repositories"] = rendered
	}
	w.forgetExpired()
	w.tokens[tok.value] = tok
	return created(body)
}

// narrow sets a token's permissions: the requested ones, or all of the installation's.
func (w credentials) narrow(tok *token, want map[string]string) *reply {
	granted := w.app.permissions
	if len(want) == 0 {
		tok.permissions = granted
		return nil
	}
	for name, level := range want {
		if rank(granted[name]) < rank(level) || rank(level) <= 0 {
			return problem(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
		}
	}
	tok.permissions = map[string]string{"metadata": "read"}
	for name, level := range want {
		tok.permissions[name] = level
	}
	return nil
}

func (w credentials) forgetExpired() {
	for value, tok := range w.tokens {
		if !tok.expires.IsZero() && !w.now().Before(tok.expires) {
			delete(w.tokens, value)
		}
	}
}

// install adds a repository to its owner's installation, which it creates if missing.
func (w apps) install(r *repository) {
	stub := stubs(r)
	for _, in := range w.installations {
		if in.account == r.owner && !in.removed {
			in.repos[r.id] = true
			w.emitApp("installation_repositories", in, r.owner, obj{"action": "added", "repository_selection": "selected",
				"repositories_added": stub, "repositories_removed": []obj{}, "requester": nil})
			return
		}
	}
	in := &installation{app: w.app, id: w.newID(), account: r.owner, repos: map[int64]bool{r.id: true}, created: w.now()}
	w.installations = append(w.installations, in)
	w.emitApp("installation", in, r.owner, obj{"action": "created", "repositories": stub, "requester": nil})
}

// stubs renders repositories in the short form of installation events.
func stubs(repos ...*repository) []obj {
	list := []obj{}
	for _, r := range repos {
		list = append(list, obj{"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "private": !r.public})
	}
	return list
}

// Install reinstalls the App on a repository after Uninstall or RemoveRepo.
func (w apps) Install(repo string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err == nil && w.installationOf(r) == nil {
		w.install(r)
	}
	return err
}

func (w apps) InstallationID(repo string) (id int64, err error) {
	err = w.installed(repo, func(_ *repository, in *installation) { id = in.id })
	return id, err
}

func (w apps) installed(repo string, do func(*repository, *installation)) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	in := w.installationOf(r)
	if in == nil {
		return fmt.Errorf("the App is not installed on %s", repo)
	}
	do(r, in)
	return nil
}

// Uninstall removes the App from a repository's owner.
func (w apps) Uninstall(repo string) error {
	return w.installed(repo, func(r *repository, in *installation) {
		in.removed = true
		w.emitApp("installation", in, r.owner, obj{"action": "deleted", "repositories": stubs(w.reposOf(in)...), "requester": nil})
	})
}

// RemoveRepo removes one repository from the installation.
func (w apps) RemoveRepo(repo string) error {
	return w.installed(repo, func(r *repository, in *installation) {
		delete(in.repos, r.id)
		w.emitApp("installation_repositories", in, r.owner, obj{"action": "removed", "repository_selection": "selected",
			"repositories_added": []obj{}, "repositories_removed": stubs(r), "requester": nil})
	})
}

// Suspend pauses a repository's installation: requests with its tokens get 403, and events stop.
func (w apps) Suspend(repo string) error { return w.pause(repo, "suspend", w.now()) }

func (w apps) Unsuspend(repo string) error { return w.pause(repo, "unsuspend", time.Time{}) }

func (w apps) pause(repo, action string, since time.Time) error {
	return w.installed(repo, func(r *repository, in *installation) {
		in.suspended = since
		w.emitApp("installation", in, r.owner, obj{"action": action, "requester": nil})
	})
}

// codeLife: "You must complete this step of the GitHub App Manifest flow within one hour".
const codeLife = time.Hour

// Manifest is a submitted App manifest. An empty Org means the signed-in account.
type Manifest struct {
	Org         string `json:"-"`
	State       string `json:"-"`
	Name        string `json:"name"`
	URL         string `json:"url"`
	Description string `json:"description"`
	Public      bool   `json:"public"`
	Hook        struct {
		URL    string `json:"url"`
		Active *bool  `json:"active"`
	} `json:"hook_attributes"`
	RedirectURL string            `json:"redirect_url"`
	Callbacks   []string          `json:"callback_urls"`
	Events      []string          `json:"default_events"`
	Permissions map[string]string `json:"default_permissions"`
}

type manifestCode struct {
	manifest Manifest
	made     time.Time
}

// formPath is GitHub's path for manifests.
var formPath = regexp.MustCompile(`^(?:/organizations/([A-Za-z0-9-]+))?/settings/apps/new$`)

// servesManifest answers a browser's form as if the user had pressed "Create GitHub App". It returns false for other
// requests.
func (s apps) servesManifest(w http.ResponseWriter, r *http.Request) bool {
	path := formPath.FindStringSubmatch(r.URL.Path)
	if path == nil || r.Method != http.MethodPost {
		return false
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody)
	m := Manifest{Org: path[1], State: r.URL.Query().Get("state")}
	var back *url.URL
	err := json.Unmarshal([]byte(r.PostFormValue("manifest")), &m)
	if err == nil {
		back, err = url.Parse(m.RedirectURL)
	}
	if err != nil || m.URL == "" || m.Hook.URL == "" || !back.IsAbs() {
		http.Error(w, fmt.Sprintf("Invalid GitHub App configuration: %v", err), http.StatusUnprocessableEntity)
		return true
	}
	code := make([]byte, 20)
	rand.Read(code)
	q := back.Query()
	q.Set("code", hex.EncodeToString(code))
	if m.State != "" {
		q.Set("state", m.State)
	}
	back.RawQuery = q.Encode()
	s.mu.Lock()
	s.world.manifests = append(s.world.manifests, m)
	s.world.codes[hex.EncodeToString(code)] = manifestCode{manifest: m, made: s.now()}
	s.mu.Unlock()
	http.Redirect(w, r, back.String(), http.StatusFound)
	return true
}

// convertManifest exchanges a code for the App. A code works once, within an hour. The App under test takes the
// manifest's settings.
func (w apps) convertManifest(c *call) *reply {
	code, known := w.codes[c.r.PathValue("code")]
	if !known || w.now().Sub(code.made) > codeLife {
		return notFound()
	}
	delete(w.codes, c.r.PathValue("code"))
	a, m := w.app, code.manifest
	a.permissions, a.events, a.callbacks = maps.Clone(m.Permissions), slices.Clone(m.Events), slices.Clone(m.Callbacks)
	if m.Org != "" {
		owner := w.accounts[strings.ToLower(m.Org)]
		if owner == nil {
			owner = &account{id: w.newID(), login: m.Org, kind: "Organization"}
			w.accounts[strings.ToLower(m.Org)] = owner
		}
		a.owner = owner
	}
	body := w.renderApp(a)
	body["client_id"], body["client_secret"] = clientID, w.clientSecret
	body["webhook_secret"], body["pem"] = textOrNull(w.secret), string(w.PrivateKeyPEM())
	return created(body)
}

func (w apps) Manifests() []Manifest {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.manifests)
}

// SetHookRanges sets the published source addresses of webhooks. The default is none, as on an Enterprise Server.
func (w apps) SetHookRanges(ranges ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.world.hookRanges = ranges
}

func (w apps) getMeta(*call) *reply {
	body := obj{"verifiable_password_authentication": false}
	if len(w.world.hookRanges) > 0 {
		body["hooks"] = w.world.hookRanges
	}
	return ok(body)
}

// Ping sends the ping event, which announces a new webhook.
func (w apps) Ping() {
	defer w.act()()
	app := w.renderApp(w.app)
	w.webhooks.add(newDelivery("ping", obj{"zen": "Keep it logically awesome.", "hook_id": hookID, "hook": obj{"type": "App",
		"id": hookID, "name": "web", "active": true, "app_id": w.app.id, "events": app["events"], "config": w.webhooks.hookConfig(),
		"created_at": app["created_at"], "updated_at": app["updated_at"], "deliveries_url": w.api() + "app/hook/deliveries"}}, 0, 0))
}
