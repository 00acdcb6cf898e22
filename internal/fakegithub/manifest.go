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

// codeLife is how long the code for a manifest is good ("You must complete this
// step of the GitHub App Manifest flow within one hour").
const codeLife = time.Hour

// Manifest is what was submitted to make an App, for an organization or, with an
// empty Org, for the account that is signed in.
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
	Events      []string          `json:"default_events"`
	Permissions map[string]string `json:"default_permissions"`
}

type manifestCode struct {
	manifest Manifest
	made     time.Time
}

// formPath is where GitHub takes manifests.
var formPath = regexp.MustCompile(`^(?:/organizations/([A-Za-z0-9-]+))?/settings/apps/new$`)

// servesManifest answers the form that a browser sends, as if the person had
// pressed "Create GitHub App" on the page that GitHub shows in between. It returns
// false when the request is none of it.
func (s *Server) servesManifest(w http.ResponseWriter, r *http.Request) bool {
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

// convertManifest gives the App for a code, once and within the hour. There is
// one App at this GitHub, the one under test: it takes over what the manifest
// asks for, and its key and secret are the answer.
func (s *Server) convertManifest(c *call) *reply {
	code, known := s.world.codes[c.params["code"]]
	if !known || s.now().Sub(code.made) > codeLife || s.privatePEM == nil {
		return notFound()
	}
	delete(s.world.codes, c.params["code"])
	a, m := s.world.app, code.manifest
	a.permissions, a.events = maps.Clone(m.Permissions), slices.Clone(m.Events)
	if m.Org != "" {
		owner := s.world.accounts[strings.ToLower(m.Org)]
		if owner == nil {
			owner = &account{id: s.world.newID(), login: m.Org, kind: "Organization"}
			s.world.accounts[strings.ToLower(m.Org)] = owner
		}
		a.owner = owner
	}
	body := s.renderApp(a)
	body["client_id"], body["client_secret"] = "Iv1.8a61f9b3a7aba766", randomText(30)
	body["webhook_secret"], body["pem"] = textOrNull(s.secret), string(s.privatePEM)
	return created(body)
}

// Manifests lists what was submitted to make Apps, oldest first.
func (s *Server) Manifests() []Manifest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.world.manifests)
}
