package fakegithub

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v4"
)

// token is an installation token or, with user set, a personal access token.
type token struct {
	user         *account
	installation *installation
	permissions  map[string]string
	repos        map[int64]bool // nil: every repository of the installation
	expires      time.Time      // zero for personal tokens
	value        string
}

// caller is who makes a request. The zero value is anonymous.
type caller struct {
	app   *app
	token *token
}

// tokenLife is how long an installation token lives (GitHub: "Installation
// access tokens expire after 1 hour").
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

// via is the App through which an act is done, nil for people.
func (c caller) via() *app {
	if c.token != nil && c.token.user == nil {
		return c.app
	}
	return nil
}

// name is how the request log calls the caller; it never holds a secret.
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

// described is how GitHub's rate limit messages call the caller.
func (c caller) described() string {
	switch {
	case c.token != nil && c.token.user != nil:
		return "user ID " + fmtID(c.token.user.id)
	case c.token != nil:
		return "installation ID " + fmtID(c.token.installation.id)
	case c.app != nil:
		return "app ID " + fmtID(c.app.id)
	}
	return "127.0.0.1"
}

// authenticate reads the Authorization header; a nil reply means that it is
// absent or good.
func (s *Server) authenticate(r *http.Request) (caller, *reply) {
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
		return s.authenticateApp(value)
	}
	tok := s.world.tokens[value]
	if tok == nil || (!tok.expires.IsZero() && !s.now().Before(tok.expires)) {
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
	return caller{app: s.world.app, token: tok}, nil
}

// authenticateApp checks a JWT as GitHub documents it: RS256, issued by the
// App's id, at most ten minutes ahead. It asks the real time, not the clock of
// Options: client libraries sign by the real time, and a test that moves the
// clock to let tokens expire still needs new ones.
func (s *Server) authenticateApp(value string) (caller, *reply) {
	refuse := func(why string) (caller, *reply) { return caller{}, problem(http.StatusUnauthorized, why) }
	claims := jwt.MapClaims{}
	parser := jwt.NewParser(jwt.WithValidMethods([]string{"RS256"}), jwt.WithoutClaimsValidation())
	if _, err := parser.ParseWithClaims(value, claims, func(*jwt.Token) (any, error) { return s.publicKey, nil }); err != nil {
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
	if issuer != strconv.FormatInt(s.world.app.id, 10) {
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
	return caller{app: s.world.app}, nil
}

// newInstallationToken has the long form with dots that GitHub issues now, so
// that nobody relies on 40 characters.
func newInstallationToken() string {
	return "ghs_" + randomText(129) + "." + randomText(129) + "." + randomText(129)
}

func randomText(n int) string {
	b := make([]byte, n)
	rand.Read(b)
	return base64.RawURLEncoding.EncodeToString(b)
}

// UserToken makes a personal access token for a person.
func (s *Server) UserToken(login string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	user, err := s.world.account(login)
	if err != nil {
		return "", err
	}
	b := make([]byte, 18)
	rand.Read(b)
	value := "ghp_" + hex.EncodeToString(b)
	s.world.tokens[value] = &token{user: user, value: value}
	return value, nil
}

// RevokeTokens makes every installation token issued so far invalid.
func (s *Server) RevokeTokens() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for value, tok := range s.world.tokens {
		if tok.user == nil {
			delete(s.world.tokens, value)
		}
	}
}
