package fakegithub

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// The web application flow of a GitHub App's login (docs.github.com, "Generating a user access token for a GitHub
// App").
const (
	authorizePath   = "/login/oauth/authorize"
	accessTokenPath = "/login/oauth/access_token"
	// SignedInCookie names the user signed in at this GitHub, like GitHub's cookie.
	SignedInCookie = "dotcom_user"
	// clientID has the form of an App's client id.
	clientID = "Iv1.8a61f9b3a7aba766"
)

// Lifetimes of GitHub's codes ("The temporary code will expire after 10 minutes") and user tokens.
const (
	grantLife     = 10 * time.Minute
	userTokenLife = 8 * time.Hour
)

// grant is the data behind a login code.
type grant struct {
	user                *account
	redirect, challenge string
	made                time.Time
}

func (w apps) SetCallbacks(urls ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.app.callbacks = urls
}

func (w apps) OAuthClient() (id, secret string) { return clientID, w.clientSecret }

func (w credentials) RevokeUserTokens() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for value, tok := range w.tokens {
		if tok.user != nil && !tok.expires.IsZero() {
			delete(w.tokens, value)
		}
	}
}

// Revoke withdraws a user's authorization of the App: its user tokens end, and the App gets the event.
func (w credentials) Revoke(login string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	user, err := w.account(login)
	if err != nil {
		return err
	}
	for value, tok := range w.tokens {
		if tok.user == user && !tok.expires.IsZero() {
			delete(w.tokens, value)
		}
	}
	w.webhooks.add(newDelivery("github_app_authorization", obj{"action": "revoked", "sender": w.renderUser(user)}, 0, 0))
	return nil
}

// servesOAuth answers the flow's two addresses. It returns false for other requests.
func (w credentials) servesOAuth(out http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.URL.Path == authorizePath && r.Method == http.MethodGet:
		w.authorize(out, r)
	case r.URL.Path == accessTokenPath && r.Method == http.MethodPost:
		w.exchange(out, r)
	default:
		return false
	}
	return true
}

// authorize redirects the browser as if its user had pressed "Authorize".
func (w credentials) authorize(out http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	q := r.URL.Query()
	var user *account
	if c, err := r.Cookie(SignedInCookie); err == nil {
		user, _ = w.account(c.Value)
	}
	redirect := q.Get("redirect_uri")
	switch {
	case q.Get("client_id") != clientID:
		http.Error(out, "Not Found", http.StatusNotFound)
		return
	case user == nil:
		http.Redirect(out, r, "/login?"+url.Values{"return_to": {r.URL.RequestURI()}}.Encode(), http.StatusFound)
		return
	case !slices.Contains(w.app.callbacks, redirect):
		http.Error(out, "The redirect_uri is not associated with this application.", http.StatusBadRequest)
		return
	case q.Get("code_challenge") != "" && (q.Get("code_challenge_method") != "S256" || len(q.Get("code_challenge")) != 43):
		http.Error(out, "code_challenge_method must be S256", http.StatusBadRequest)
		return
	}
	code := randomText(15)
	w.grants[code] = grant{user: user, redirect: redirect, challenge: q.Get("code_challenge"), made: w.now()}
	back := url.Values{"code": {code}}
	if state := q.Get("state"); state != "" {
		back.Set("state", state)
	}
	http.Redirect(out, r, redirect+"?"+back.Encode(), http.StatusFound)
}

// exchange trades a code for a user token. GitHub's refusals also have status 200.
func (w credentials) exchange(out http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(out, r.Body, maxBody)
	form := func(name string) string { return r.FormValue(name) }
	w.mu.Lock()
	defer w.mu.Unlock()
	g, known := w.grants[form("code")]
	sum := sha256.Sum256([]byte(form("code_verifier")))
	var answer obj
	switch {
	case form("client_id") != clientID || form("client_secret") != w.clientSecret:
		answer = obj{"error": "incorrect_client_credentials", "error_description": "The client_id and/or client_secret passed are incorrect."}
	case !known || w.now().Sub(g.made) > grantLife,
		g.challenge != "" && base64.RawURLEncoding.EncodeToString(sum[:]) != g.challenge:
		answer = obj{"error": "bad_verification_code", "error_description": "The code passed is incorrect or expired."}
	case form("redirect_uri") != "" && form("redirect_uri") != g.redirect:
		answer = obj{"error": "redirect_uri_mismatch", "error_description": "The redirect_uri MUST match the registered callback URL for this application."}
	default:
		value := "ghu_" + randomText(27)
		w.tokens[value] = &token{user: g.user, value: value, expires: w.now().Add(userTokenLife)}
		answer = obj{"access_token": value, "expires_in": int(userTokenLife.Seconds()), "refresh_token": "ghr_" + randomText(57),
			"refresh_token_expires_in": 15897600, "token_type": "bearer", "scope": ""}
	}
	delete(w.grants, form("code"))
	out.Header().Set("Content-Type", "application/json; charset=utf-8")
	_ = json.NewEncoder(out).Encode(answer) // the client may be gone
}

func (w people) getSelf(c *call) *reply {
	if c.who.token.user == nil {
		return problem(http.StatusForbidden, "Resource not accessible by integration")
	}
	return ok(w.renderProfile(c.who.token.user))
}
