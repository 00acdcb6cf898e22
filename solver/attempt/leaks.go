package attempt

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// secrets are what an attempt, its setup or its judge got, and what only the server holds, which an agent without a
// sandbox could find: the names, and how to read them. Backend is the attempt's.
func (e *Env) secrets(c *config.Server, t thread.ID, n int, backend config.Backend) (names []string, value func(name string) (string, bool)) {
	own := c.Secrets()
	held, _ := e.held.Load(e.attemptDir(t, n))
	tokens, _ := held.(map[string]string)
	names = slices.Concat(backend.Env, c.Policy.Learning.JudgeEnv, c.Setup.Names(t.Repo()))
	names = slices.AppendSeq(slices.AppendSeq(names, maps.Keys(own)), maps.Keys(tokens))
	return names, func(name string) (string, bool) {
		if s, ok := own[name]; ok {
			return s.Reveal(), true
		}
		if token, ok := tokens[name]; ok {
			return token, true
		}
		return e.Lookup(name)
	}
}

// hold has the tokens of an attempt known to secrets until they are worth nothing: the gateway's ends with the agent, an
// installation's an hour after it was made.
func hold(a *Attempt, session string) {
	dir := a.attemptDir(a.Thread, a.N)
	a.held.Store(dir, map[string]string{"the token of the attempt": session, "the token of the installation": a.Ground.remote.Token})
	time.AfterFunc(a.backend().Timeout+time.Hour, func() { a.held.Delete(dir) })
}

func redactor(a *Attempt) text.Secrets {
	return text.NewSecrets(a.secrets(a.Config, a.Thread, a.N, a.backend()))
}

// leaks puts into the receipt what in a tree looks like a secret and is neither in what the attempt started from nor
// in its base: of work that goes on from earlier attempts both halves of a value count, also where a commit removed one
// again. Paths are read, too. The receipt names places, never values.
func leaks(ctx context.Context, c *checkout, tree string) error {
	type found struct {
		text.Place
		line string
	}
	base, err := c.base(ctx)
	if err != nil {
		return err
	}
	sides := slices.Compact([]string{base, c.Ground.Start}) // the base first: from there on only the work differs
	secrets, r := redactor(c.Attempt), &c.Receipt
	r.Leaks = nil
	told := map[text.Place]bool{}
	add := func(at text.Place, l text.Leak) {
		if !told[at] {
			told[at] = true
			r.Leaks = append(r.Leaks, policy.Leak{Path: text.When(at.Line > 0, at.Path), Line: at.Line, Kind: l.Kind, Fingerprint: l.Fingerprint})
		}
	}
	seen, pieces := map[found]bool{}, map[text.Place]text.Leak{}
	for i, side := range sides {
		first, last := i == 0, i == len(sides)-1
		var paths []string // those of what was found at the side before; none names all
		if !first {
			if len(seen)+len(pieces) == 0 {
				break
			}
			for f := range seen {
				paths = append(paths, f.Path)
			}
			for at := range pieces {
				paths = append(paths, at.Path)
			}
			if len(paths) > maxPaths {
				paths = nil
			}
		}
		search := secrets.Search()
		see := func(path string, n int, line string) {
			at := text.Place{Path: path, Line: n}
			if l, is := secrets.Find(path, line); is {
				if last && (first || seen[found{at, line}]) {
					add(at, l)
				}
				seen[found{at, line}] = true
			}
			if first {
				search.See(at, line)
			} else if l, is := pieces[at]; is {
				add(at, l)
			}
		}
		_, _, added, err := c.ws.Paths(ctx, side, tree)
		if err != nil {
			return err
		}
		for _, path := range added {
			see(path, 0, path)
		}
		begun, from, key := "", 0, "" // a private key, whose next line tells it from others
		end := func() {
			if key != "" {
				see(begun, from, key)
			}
			key = ""
		}
		err = c.ws.Added(ctx, side, tree, func(path string, n int, line string) {
			if key != "" && path == begun && n == from+1 {
				key += "\n" + line
			}
			end()
			if strings.Contains(line, "-----BEGIN ") {
				begun, from, key = path, n, line
				return
			}
			see(path, n, line)
		}, paths...)
		if err != nil {
			return err
		}
		end()
		if first && !last { // what earlier commits added and later ones removed leaves with them
			if err := c.ws.AddedSince(ctx, side, c.Ground.Start, func(path string, n int, line string) {
				search.See(text.Place{Path: path, Line: n}, line)
			}); err != nil && !errors.Is(err, git.ErrTooLarge) {
				return err
			}
		}
		if first {
			var places []text.Place
			if places, pieces = search.Found(); last {
				for _, at := range places {
					add(at, pieces[at])
				}
			}
		}
	}
	r.Leaks = slices.DeleteFunc(r.Leaks, func(l policy.Leak) bool {
		return slices.ContainsFunc(c.Ground.Effective.AllowSecrets, func(allowed string) bool { return strings.EqualFold(allowed, l.Fingerprint) })
	})
	return nil
}
