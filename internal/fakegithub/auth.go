package fakegithub

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// token is an installation token. With user set, it is a personal access token or a user's token from a login.
type token struct {
	user         *account
	installation *installation
	permissions  map[string]string
	repos        map[int64]bool // nil means all of the installation's
	expires      time.Time      // zero for personal tokens
	value        string
}

// caller is the sender of a request. The zero value is anonymous.
type caller struct {
	app   *app
	token *token
}

// tokenLife: "Installation access tokens expire after 1 hour".
const tokenLife = time.Hour

func (c caller) account() *account {
	switch {
	case c.token != nil && c.token.user != nil:
		return c.token.user
	case c.app != nil:
		return c.app.bot
	}
	return nil
}

// via returns the App that makes the request; nil for users.
func (c caller) via() *app {
	if c.token != nil && c.token.user == nil {
		return c.app
	}
	return nil
}

// name is the caller in the request log, without secrets.
func (c caller) name() string {
	switch {
	case c.token != nil && c.token.user != nil:
		return "user:" + c.token.user.login
	case c.token != nil:
		return "installation:" + strconv.FormatInt(c.token.installation.id, 10)
	case c.app != nil:
		return "app"
	}
	return "anonymous"
}

// authenticate reads the Authorization header. A nil reply means that it is absent or valid.
func (w credentials) authenticate(r *http.Request) (caller, *reply) {
	header := r.Header.Get("Authorization")
	if header == "" {
		return caller{}, nil
	}
	value := ""
	if _, password, ok := r.BasicAuth(); ok {
		value = password
	} else if scheme, rest, ok := strings.Cut(header, " "); ok && (strings.EqualFold(scheme, "bearer") || strings.EqualFold(scheme, "token")) {
		value = strings.TrimSpace(rest)
	}
	if strings.HasPrefix(value, "ey") {
		return w.authenticateApp(value)
	}
	tok := w.tokens[value]
	if tok == nil || (!tok.expires.IsZero() && !w.now().Before(tok.expires)) {
		return caller{}, problem(http.StatusUnauthorized, "Bad credentials")
	}
	if tok.user != nil {
		return caller{token: tok}, nil
	}
	if tok.installation.removed {
		return caller{}, problem(http.StatusUnauthorized, "Bad credentials")
	}
	if !tok.installation.suspended.IsZero() {
		return caller{}, problem(http.StatusForbidden, "This installation has been suspended")
	}
	return caller{app: w.app, token: tok}, nil
}

// authenticateApp checks a JWT as documented: RS256, issued by the App's id, and expiring within ten minutes. It uses
// the real time, like client libraries, not the clock of Options.
func (w credentials) authenticateApp(value string) (caller, *reply) {
	refuse := func(why string) (caller, *reply) { return caller{}, problem(http.StatusUnauthorized, why) }
	claims := jwt.MapClaims{}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	if _, err := parser.ParseWithClaims(value, claims, func(*jwt.Token) (any, error) { return &w.key.PublicKey, nil }); err != nil {
		return refuse("A JSON web token could not be decoded")
	}
	issuer := ""
	switch iss := claims["iss"].(type) {
	case string:
		issuer = iss
	case float64:
		issuer = strconv.FormatInt(int64(iss), 10)
	}
	if issuer == "" {
		return refuse("Missing 'issuer' claim ('iss') in assertion")
	}
	if issuer != strconv.FormatInt(w.app.id, 10) {
		return caller{}, problem(http.StatusNotFound, "Integration not found")
	}
	now := time.Now()
	exp, ok := claims["exp"].(float64)
	if !ok || !time.Unix(int64(exp), 0).After(now) {
		return refuse("'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires")
	}
	if time.Unix(int64(exp), 0).After(now.Add(10 * time.Minute)) {
		return refuse("'Expiration time' claim ('exp') is too far in the future")
	}
	if iat, ok := claims["iat"].(float64); !ok || time.Unix(int64(iat), 0).After(now.Add(time.Minute)) {
		return refuse("'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued")
	}
	return caller{app: w.app}, nil
}

// newInstallationToken returns a token in GitHub's long form with dots.
func newInstallationToken() string {
	return "ghs_" + randomText(129) + "." + randomText(129) + "." + randomText(129)
}

func randomText(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// access is the credentials that a route needs.
type access int

const (
	anyone  access = iota // no credentials needed
	asApp                 // the App's JWT
	asToken               // an installation or personal token
)

// rank orders roles and permissions; unknown ones are below none.
func rank(name string) int {
	return slices.Index([]string{"none", "read", "triage", "write", "maintain", "admin"}, name)
}

// admit decides whether the caller may use the route; nil means yes.
func (c *call) admit(rt route) *reply {
	switch {
	case rt.access == asApp && (c.who.app == nil || c.who.token != nil):
		return problem(http.StatusUnauthorized, "A JSON web token could not be decoded")
	case rt.access == asToken && c.who.token == nil && c.who.app == nil && c.repo != nil:
		return notFound() // hides the repository's existence
	case rt.access == asToken && c.who.token == nil:
		return problem(http.StatusUnauthorized, "Requires authentication")
	case rt.access != asToken || c.repo == nil:
		return nil
	}
	if !c.sees(c.repo) {
		return notFound()
	}
	if rt.permission == "" {
		return nil
	}
	for _, permission := range strings.Split(rt.permission, "|") {
		if c.has(permission) {
			return nil
		}
	}
	return c.forbidden(rt.permission)
}

// sees reports whether the caller may know of the repository; otherwise GitHub answers 404.
func (c *call) sees(r *repository) bool {
	tok := c.who.token
	switch {
	case tok == nil:
		return false
	case tok.user != nil:
		return r.role(tok.user) != "none"
	}
	return tok.covers(r)
}

func (tok *token) covers(r *repository) bool {
	return tok.installation.repos[r.id] && (tok.repos == nil || tok.repos[r.id])
}

// has reports whether the caller has a permission such as "issues:write" in the call's repository.
func (c *call) has(permission string) bool {
	name, level, _ := strings.Cut(permission, ":")
	tok := c.who.token
	if tok.user == nil {
		return rank(tok.permissions[name]) >= rank(level)
	}
	role := rank(c.repo.role(tok.user))
	switch {
	case name == "checks" && level == "write":
		return false // only Apps write check runs
	case name == "issues" || name == "pull_requests" || level == "read":
		return role >= rank("read") // readers may comment
	}
	return role >= rank(level)
}

func (c *call) forbidden(permission string) *reply {
	if c.who.token.user == nil {
		return problem(http.StatusForbidden, "Resource not accessible by integration")
	}
	if permission == "checks:write" {
		return problem(http.StatusForbidden, "You must authenticate via a GitHub App.")
	}
	return problem(http.StatusForbidden, "Must have write access to the repository.")
}

// mayTouch returns a refusal, or nil if the caller may act on a thread. Admitted callers may read; to write, an App
// needs the permission for the thread's kind.
func (c *call) mayTouch(t *thread) *reply {
	if c.r.Method == http.MethodGet || c.who.token.user != nil || c.has("issues:write") || (t.pull != nil && c.has("pull_requests:write")) {
		return nil
	}
	return c.forbidden("issues:write")
}

// mayChange returns a refusal, or nil if the caller may change author's text. Apps, writers and the author may.
func (c *call) mayChange(author *account) *reply {
	tok := c.who.token
	if tok.user == nil || tok.user.id == author.id || rank(c.repo.role(tok.user)) >= rank("write") {
		return nil
	}
	return problem(http.StatusForbidden, "Must have admin rights to Repository.")
}

// AddUser creates a user. roles maps "owner/name" to none, read, triage, write, maintain or admin. The
// repositories must exist. Call it before AddRepo to make a user the owner; otherwise owners are organizations.
func (w people) AddUser(login string, id int64, roles map[string]string) error {
	return w.addAccount(login, id, "User", roles)
}

// AddBot creates another App's bot, such as "dependabot[bot]".
func (w people) AddBot(login string, id int64) error { return w.addAccount(login, id, "Bot", nil) }

func (w people) addAccount(login string, id int64, kind string, roles map[string]string) error {
	defer w.act()()
	key := strings.ToLower(login)
	if w.accounts[key] != nil {
		return fmt.Errorf("the account %q exists already", login)
	}
	w.accounts[key] = &account{id: id, login: login, kind: kind}
	for full, role := range roles {
		if err := w.setRole(full, login, role); err != nil {
			return err
		}
	}
	return nil
}

func (w people) SetRole(repo, login, role string) error {
	defer w.act()()
	return w.setRole(repo, login, role)
}

func (w people) setRole(full, login, role string) error {
	r, err := w.repo(full)
	if err != nil {
		return err
	}
	if rank(role) < 0 {
		return fmt.Errorf("no role %q: use one of none, read, triage, write, maintain, admin", role)
	}
	r.roles[strings.ToLower(login)] = role
	return nil
}

// UserToken creates a personal access token.
func (w credentials) UserToken(login string) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	user, err := w.account(login)
	if err != nil {
		return "", err
	}
	b := make([]byte, 18)
	rand.Read(b)
	value := "ghp_" + hex.EncodeToString(b)
	w.tokens[value] = &token{user: user, value: value}
	return value, nil
}

// RevokeTokens revokes all installation tokens.
func (w credentials) RevokeTokens() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for value, tok := range w.tokens {
		if tok.user == nil {
			delete(w.tokens, value)
		}
	}
}

// AddOtherApp creates another App, such as a CI service, that may write check runs.
func (w apps) AddOtherApp(slug string, id int64) {
	defer w.act()()
	w.otherApps[slug] = w.newApp(id, slug, map[string]string{"checks": "write"}, w.now())
}

func (w people) getUser(c *call) *reply {
	a, err := w.account(c.r.PathValue("login"))
	if err != nil {
		return notFound()
	}
	return ok(w.renderProfile(a))
}

// getPermission returns the four old levels in "permission" and the exact one in "role_name". Users without a role
// get "none", even in a public repository. For Apps, which GitHub does not document, it returns 404.
func (w people) getPermission(c *call) *reply {
	a, err := w.account(c.r.PathValue("login"))
	if err != nil || a.kind != "User" {
		return problem(http.StatusNotFound, c.r.PathValue("login")+" is not a user")
	}
	role := c.repo.role(a)
	permission := role
	switch role {
	case "maintain":
		permission = "write"
	case "triage":
		permission = "read"
	}
	user := w.renderUser(a)
	user["role_name"] = role
	has := rank(role)
	user["permissions"] = obj{"pull": has >= 1, "triage": has >= 2, "push": has >= 3, "maintain": has >= 4, "admin": has >= 5}
	return ok(obj{"permission": permission, "role_name": role, "user": user})
}
