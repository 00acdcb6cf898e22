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

// How long people stay signed in, how long they may take at GitHub, and how long a link of pawl login is good.
const (
	sessionTime = 8 * time.Hour // a working day, and the life of GitHub's own user tokens
	loginTime   = 10 * time.Minute
	LinkTime    = 5 * time.Minute
)

// session is what a browser holds, sealed: nobody can read or change it. All nodes on a database have the same key,
// so any of them knows it.
type session struct {
	Person
	Until time.Time `json:"until"`
	// Knows is signedOut.Last when it began: it outlives who was signed out until then.
	Knows int64 `json:"knows,omitempty"`
}

// login is what a browser holds while its person is at GitHub.
type login struct {
	State    string    `json:"state"`
	Verifier string    `json:"verifier"` // of PKCE
	Next     string    `json:"next"`     // the path to go to afterwards
	Until    time.Time `json:"until"`
}

// keyBytes are 32 of the key that signs and 32 of the one that hides.
const keyBytes = 64

func newSeal(key []byte) *securecookie.SecureCookie {
	// The times in what is sealed count, which go by the server's clock.
	return securecookie.New(key[:keyBytes/2], key[keyBytes/2:]).MaxAge(0).SetSerializer(securecookie.JSONEncoder{})
}

// SessionKey is the key of the sessions, which is made once for each database.
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

// cookie is a sealed one of this site. With https its name begins with __Host-, which keeps other hosts of the
// domain from setting it.
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

// session reads who is signed in. Who is an operator is asked of the configuration each time, and who was signed out of
// the database; an error is no yes.
func (p *pages) session(r *http.Request) (by Person, ok bool, err error) {
	var s session
	if !p.opened(r, sessionCookie, &s) || !p.Now().Before(s.Until) {
		return Person{}, false, nil
	}
	if s.Login != "" {
		out, err := p.signedOut(r.Context())
		if err != nil || s.Knows < max(out.All, out.People[s.ID].N) {
			return Person{}, false, err
		}
	}
	s.Operator = s.Login == "" || p.Access.operator(s.Login)
	return s.Person, true, nil
}

// signedOut are the people whose sessions ended before their time. They are counted, since the clocks of nodes differ.
type signedOut struct {
	Last   int64          `json:"last"` // the number of the last one
	All    int64          `json:"all"`  // of the last one that is not among People any more, whose end is that of all
	People map[int64]left `json:"people"`
}

type left struct {
	N  int64     `json:"n"`
	At time.Time `json:"at"`
}

// maxSignedOut is how many are remembered. Beyond it the sessions of all people end that began before the first of
// them left: they sign in again.
const maxSignedOut = 1000

const signedOutKey = "signed out"

// SignOut ends the sessions of a person, by the id at GitHub, on all nodes.
func SignOut(ctx context.Context, s *store.Store, person int64) error {
	return s.UpdateShared(ctx, signedOutKey, func(now time.Time, old []byte) []byte {
		out := readSignedOut(old)
		out.Last++
		out.People[person] = left{out.Last, now}
		first := person
		for id, l := range out.People {
			if now.Sub(l.At) > 2*sessionTime { // whatever the clocks of nodes say, those sessions are over
				delete(out.People, id)
			} else if l.N < out.People[first].N {
				first = id
			}
		}
		if len(out.People) > maxSignedOut {
			out.All = out.People[first].N
			delete(out.People, first)
		}
		next, _ := json.Marshal(out) // numbers and times, which can always be written
		return next
	})
}

func readSignedOut(data []byte) (out signedOut) {
	_ = json.Unmarshal(data, &out) // what Pawl did not write is as if nobody had been signed out
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

// NewLink makes the secret of a link by which one browser becomes an operator, once and within LinkTime. Only its
// hash is kept.
func NewLink(ctx context.Context, s *store.Store) (secret string, err error) {
	secret = rand.Text()
	_, err = useLinks(ctx, s, func(now time.Time, links map[string]time.Time) bool {
		links[hashed(secret)] = now.Add(LinkTime)
		return true
	})
	return secret, err
}

// isGood reports whether a link could be used now. It uses nothing up.
func isGood(ctx context.Context, s *store.Store, secret string) (good bool, err error) {
	_, err = useLinks(ctx, s, func(_ time.Time, links map[string]time.Time) bool {
		_, good = links[hashed(secret)]
		return false
	})
	return good, err
}

// redeem uses a link up, on all nodes.
func redeem(ctx context.Context, s *store.Store, secret string) (good bool, err error) {
	return useLinks(ctx, s, func(_ time.Time, links map[string]time.Time) bool {
		_, known := links[hashed(secret)]
		delete(links, hashed(secret))
		return known
	})
}

// useLinks changes the links that are still good. It writes nothing where f says that nothing changed.
func useLinks(ctx context.Context, s *store.Store, f func(now time.Time, links map[string]time.Time) (changed bool)) (changed bool, err error) {
	err = s.UpdateShared(ctx, linksKey, func(now time.Time, old []byte) []byte {
		links := map[string]time.Time{}
		_ = json.Unmarshal(old, &links) // what Pawl did not write is as if there were none
		maps.DeleteFunc(links, func(_ string, until time.Time) bool { return !now.Before(until) })
		if changed = f(now, links); !changed {
			return nil
		}
		next, _ := json.Marshal(links) // texts and times, which can always be written
		return next
	})
	return changed && err == nil, err
}

func hashed(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// PagesAt is where the pages of a server on this host are, as it said when it started; remember says so.
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
