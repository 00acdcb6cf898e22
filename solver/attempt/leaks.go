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
	known := map[string]string{}
	for name, s := range c.Secrets() {
		known[name] = s.Reveal()
	}
	held, _ := e.held.Load(e.attemptDir(t, n))
	tokens, _ := held.(map[string]string)
	maps.Copy(known, tokens)
	names = slices.Concat(backend.Env, c.Policy.Learning.JudgeEnv, c.Setup.Names(t.Repo()))
	return slices.AppendSeq(names, maps.Keys(known)), func(name string) (string, bool) {
		if s, ok := known[name]; ok {
			return s, true
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
	base, err := c.base(ctx)
	if err != nil {
		return err
	}
	start, secrets := c.Ground.Start, redactor(c.Attempt)
	search, found := secrets.Search(), map[text.Place]text.Leak{}
	var places []text.Place
	add := func(at text.Place, l text.Leak) {
		if _, told := found[at]; !told {
			found[at], places = l, append(places, at)
		}
	}
	if err := addedTo(ctx, c, base, tree, nil, func(at text.Place, line string) {
		if l, is := secrets.Find(at.Path, line); is {
			add(at, l)
		}
		search.See(at, line)
	}); err != nil {
		return err
	}
	if base != start { // what earlier commits added and later ones removed leaves with them
		if err := c.ws.AddedSince(ctx, base, start, func(path string, n int, line string) {
			search.See(text.Place{Path: path, Line: n}, line)
		}); err != nil && !errors.Is(err, git.ErrTooLarge) {
			return err
		}
	}
	inPieces, pieces := search.Found()
	for _, at := range inPieces {
		add(at, pieces[at])
	}
	if base != start && len(places) > 0 {
		if places, err = notIn(ctx, c, start, tree, places); err != nil {
			return err
		}
	}
	c.Receipt.Leaks = nil
	for _, at := range places {
		l := found[at]
		allowed := func(fingerprint string) bool { return strings.EqualFold(fingerprint, l.Fingerprint) }
		if !slices.ContainsFunc(c.Ground.Effective.AllowSecrets, allowed) {
			c.Receipt.Leaks = append(c.Receipt.Leaks, policy.Leak{Path: text.When(at.Line > 0, at.Path), Line: at.Line, Kind: l.Kind, Fingerprint: l.Fingerprint})
		}
	}
	return nil
}

// notIn are those of some places of a tree that another one, a side, does not have.
func notIn(ctx context.Context, c *checkout, side, tree string, places []text.Place) ([]text.Place, error) {
	var paths []string
	for _, at := range places {
		paths = append(paths, at.Path)
	}
	if len(paths) > maxPaths {
		paths = nil // all
	}
	here := map[text.Place]bool{}
	err := addedTo(ctx, c, side, tree, paths, func(at text.Place, _ string) { here[at] = true })
	return slices.DeleteFunc(places, func(at text.Place) bool { return !here[at] }), err
}

// addedTo calls see for what a tree has beside one of its sides: for each path, at line 0, and for each line of these
// paths, or of all. The beginning of a private key comes with the line after it, which tells it from others.
func addedTo(ctx context.Context, c *checkout, side, tree string, paths []string, see func(at text.Place, line string)) error {
	_, _, added, err := c.ws.Paths(ctx, side, tree)
	if err != nil {
		return err
	}
	for _, path := range added {
		see(text.Place{Path: path}, path)
	}
	var begun text.Place
	key := ""
	end := func() {
		if key != "" {
			see(begun, key)
		}
		key = ""
	}
	err = c.ws.Added(ctx, side, tree, func(path string, n int, line string) {
		at := text.Place{Path: path, Line: n}
		if key != "" && at == (text.Place{Path: begun.Path, Line: begun.Line + 1}) {
			key += "\n" + line
		}
		end()
		if strings.Contains(line, "-----BEGIN ") {
			begun, key = at, line
			return
		}
		see(at, line)
	}, paths...)
	end()
	return err
}
