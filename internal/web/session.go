package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"time"

	"github.com/gorilla/securecookie"

	"github.com/pawlbot/pawl/internal/store"
)

// Lifetimes of sessions, logins at GitHub, and pawl login links.
const (
	sessionTime = 8 * time.Hour // a working day, and the life of GitHub's user tokens
	loginTime   = 10 * time.Minute
	LinkTime    = 5 * time.Minute
)

// session is a browser's sealed cookie. All nodes on a database share the key.
type session struct {
	User
	Until time.Time `json:"until"`
	// Knows is signedOut.Last at the session's start: earlier sign-outs do not end the session.
	Knows int64 `json:"knows,omitempty"`
}

// login is a browser's sealed cookie during a login at GitHub.
type login struct {
	State    string    `json:"state"`
	Verifier string    `json:"verifier"` // PKCE verifier
	Next     string    `json:"next"`     // path to open afterwards
	Until    time.Time `json:"until"`
}

// keyBytes is the session key's length: 32 bytes for signing and 32 for encryption.
const keyBytes = 64

func newSeal(key []byte) *securecookie.SecureCookie {
	// The server's clock decides whether the sealed times have expired.
	return securecookie.New(key[:keyBytes/2], key[keyBytes/2:]).MaxAge(0).SetSerializer(securecookie.JSONEncoder{})
}

// SessionKey returns the database's session key and creates it once.
func SessionKey(ctx context.Context, s *store.Store) (key []byte, err error) {
	err = s.UpdateShared(ctx, "session key", func(_ time.Time, old []byte) []byte {
		if key = old; len(old) == keyBytes {
			return nil
		}
		key = make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails
		return key
	})
	return key, err
}

// cookie seals a value. Over https, the name begins with __Host-, so that other hosts cannot set it.
func (p *pages) cookie(name string, value any, life time.Duration, sameSite http.SameSite) (*http.Cookie, error) {
	sealed, err := p.seal.Encode(name, value)
	return &http.Cookie{
		Name: p.Access.cookieName(name), Value: sealed, Path: "/", MaxAge: int(life.Seconds()),
		Secure: p.Access.secure(), HttpOnly: true, SameSite: sameSite,
	}, err
}

func (p *pages) opened(r *http.Request, name string, into any) bool {
	c, err := r.Cookie(p.Access.cookieName(name))
	return err == nil && p.seal.Decode(name, c.Value, into) == nil
}

func (p *pages) forget(w http.ResponseWriter, name string) {
	http.SetCookie(
		w,
		&http.Cookie{Name: p.Access.cookieName(name), Path: "/", MaxAge: -1, Secure: p.Access.secure(), HttpOnly: true},
	)
}

const (
	sessionCookie = "pawl"
	loginCookie   = "pawl-login"
)

// session returns the signed-in user; treat an error as no. It looks up sign-outs at each request, so that they take
// effect at once.
func (p *pages) session(r *http.Request) (by User, ok bool, err error) {
	var s session
	if !p.opened(r, sessionCookie, &s) || !p.Now().Before(s.Until) {
		return User{}, false, nil
	}
	if s.Login != "" {
		out, err := p.signedOut(r.Context())
		if err != nil || s.Knows < max(out.All, out.People[s.ID].N) {
			return User{}, false, err
		}
	}
	s.Operator = s.Login == "" || p.Access.operator(s.Login)
	return s.User, true, nil
}

// signedOut lists users whose sessions ended early. It numbers sign-outs, because the nodes' clocks differ.
type signedOut struct {
	Last   int64          `json:"last"` // number of the last sign-out
	All    int64          `json:"all"`  // last sign-out removed from People; sessions that began before it have ended
	People map[int64]left `json:"people"`
}

type left struct {
	N  int64     `json:"n"`
	At time.Time `json:"at"`
}

// maxSignedOut limits the list. Removing an entry ends all users' older sessions.
const maxSignedOut = 1000

const signedOutKey = "signed out"

// SignOut ends a GitHub user's sessions on all nodes.
func SignOut(ctx context.Context, s *store.Store, user int64) error {
	return s.UpdateShared(ctx, signedOutKey, func(now time.Time, old []byte) []byte {
		out := readSignedOut(old)
		out.Last++
		out.People[user] = left{out.Last, now}
		first := user
		for id, l := range out.People {
			if now.Sub(l.At) > 2*sessionTime { // expired by any node's clock
				delete(out.People, id)
			} else if l.N < out.People[first].N {
				first = id
			}
		}
		if len(out.People) > maxSignedOut {
			out.All = out.People[first].N
			delete(out.People, first)
		}
		next, _ := json.Marshal(out) // never fails
		return next
	})
}

// damagedAt exceeds the number of every earlier sign-out.
const damagedAt = 1 << 40

// readSignedOut ends all sessions if the list is damaged.
func readSignedOut(data []byte) (out signedOut) {
	if err := json.Unmarshal(data, &out); err != nil && len(data) > 0 {
		out = signedOut{Last: damagedAt, All: damagedAt}
	}
	if out.People == nil {
		out.People = map[int64]left{}
	}
	return out
}

func (p *pages) signedOut(ctx context.Context) (signedOut, error) {
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	data, err := p.Store.ReadShared(ctx, signedOutKey)
	return readSignedOut(data), err
}

const linksKey = "login links"

// NewLink returns the secret of a link that signs one browser in as an operator, once, within LinkTime. Only a hash is
// stored.
func NewLink(ctx context.Context, s *store.Store) (secret string, err error) {
	secret = rand.Text()
	_, err = useLinks(ctx, s, func(now time.Time, links map[string]time.Time) bool {
		links[hashed(secret)] = now.Add(LinkTime)
		return true
	})
	return secret, err
}

// isGood reports whether a link is valid and does not use it up.
func isGood(ctx context.Context, s *store.Store, secret string) (good bool, err error) {
	_, err = useLinks(ctx, s, func(_ time.Time, links map[string]time.Time) bool {
		_, good = links[hashed(secret)]
		return false
	})
	return good, err
}

func redeem(ctx context.Context, s *store.Store, secret string) (good bool, err error) {
	return useLinks(ctx, s, func(_ time.Time, links map[string]time.Time) bool {
		_, known := links[hashed(secret)]
		delete(links, hashed(secret))
		return known
	})
}

// useLinks changes the valid links. It writes nothing if f returns false.
func useLinks(ctx context.Context, s *store.Store, f func(now time.Time, links map[string]time.Time) (changed bool)) (changed bool, err error) {
	err = s.UpdateShared(ctx, linksKey, func(now time.Time, old []byte) []byte {
		var links map[string]time.Time
		if json.Unmarshal(old, &links) != nil || links == nil {
			links = map[string]time.Time{} // unreadable data counts as no links
		}
		maps.DeleteFunc(links, func(_ string, until time.Time) bool { return !now.Before(until) })
		if changed = f(now, links); !changed {
			return nil
		}
		next, _ := json.Marshal(links) // never fails
		return next
	})
	return changed && err == nil, err
}

func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// PagesAt returns the pages' address that the server on a host had at its last start; see RememberPages.
func PagesAt(ctx context.Context, s *store.Store, host string) (address string, err error) {
	at, err := s.ReadShared(ctx, pagesKey+host)
	if err == nil && len(at) == 0 {
		err = errors.New("no server has started on this machine yet; run pawl serve first")
	}
	return string(at), err
}

const pagesKey = "pages at "

func RememberPages(ctx context.Context, s *store.Store, host, address string) error {
	return s.UpdateShared(ctx, pagesKey+host, func(time.Time, []byte) []byte { return []byte(address) })
}
