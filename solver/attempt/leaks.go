package attempt

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// secrets names the secrets of an attempt, its setup, its judge and the server, and returns a function that reads
// them.
func (e *Env) secrets(c *config.Server, t thread.ID, n int, backend config.Backend) (names []string, value func(name string) (string, bool)) {
	known := map[string]string{}
	for name, s := range c.Secrets() {
		known[name] = s.Reveal()
	}
	held, _ := e.tokens.Load(e.attemptDir(t, n))
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

// holdTokens registers an attempt's tokens as secrets until they expire; installation tokens expire after an hour.
func (a *Attempt) holdTokens(session string) {
	dir := a.Env.attemptDir(a.Thread, a.N)
	a.Env.tokens.Store(dir, map[string]string{
		"the token of the attempt":      session,
		"the token of the installation": a.Ground.remote.Token,
	})
	time.AfterFunc(a.backend().Timeout+time.Hour, func() { a.Env.tokens.Delete(dir) })
}

func (a *Attempt) redactor() secret.Values {
	return secret.New(a.Env.secrets(a.Config, a.Thread, a.N, a.backend()))
}

// place is a line of a file, counted from 1. Line 0 means the file's name.
type place struct {
	path string
	line int
}

// leaks records apparent secrets, including in paths, that neither the start nor the base contains. The receipt shows
// locations, never values.
func (c *checkout) leaks(ctx context.Context, tree string) error {
	base, err := c.base(ctx)
	if err != nil {
		return err
	}
	secrets, found := c.redactor(), map[place]secret.Leak{}
	var places []place
	err = c.addedTo(ctx, base, tree, nil, func(at place, line string) {
		if l, is := secrets.Find(at.path, line); is {
			found[at], places = l, append(places, at)
		}
	})
	if err != nil {
		return err
	}
	if start := c.Ground.Start; start != base && len(places) > 0 {
		places, err = c.notIn(ctx, start, tree, places)
		if err != nil {
			return err
		}
	}
	c.Receipt.Leaks = nil
	for _, at := range places {
		l := found[at]
		allowed := func(fingerprint string) bool { return strings.EqualFold(fingerprint, l.Fingerprint) }
		if slices.ContainsFunc(c.Ground.Effective.AllowSecrets, allowed) {
			continue
		}
		leak := policy.Leak{Line: at.line, Kind: l.Kind, Fingerprint: l.Fingerprint}
		if at.line > 0 { // do not show a name that contains the secret
			leak.Path = at.path
		}
		c.Receipt.Leaks = append(c.Receipt.Leaks, leak)
	}
	return nil
}

func (c *checkout) notIn(ctx context.Context, side, tree string, places []place) ([]place, error) {
	var paths []string
	for _, at := range places {
		paths = append(paths, at.path)
	}
	if len(paths) > maxPaths {
		paths = nil // all paths
	}
	here := map[place]bool{}
	err := c.addedTo(ctx, side, tree, paths, func(at place, _ string) { here[at] = true })
	return slices.DeleteFunc(places, func(at place) bool { return !here[at] }), err
}

// addedTo calls see with each path (line 0) and line that a tree adds to side. The first line of a private key comes
// with the next line, which distinguishes keys.
func (c *checkout) addedTo(ctx context.Context, side, tree string, paths []string, see func(at place, line string)) error {
	_, _, added, err := c.ws.Paths(ctx, side, tree)
	if err != nil {
		return err
	}
	for _, path := range added {
		see(place{path: path}, path)
	}
	var begun place
	key := ""
	end := func() {
		if key != "" {
			see(begun, key)
		}
		key = ""
	}
	err = c.ws.Added(ctx, side, tree, func(path string, n int, line string) {
		at := place{path, n}
		if key != "" && at == (place{begun.path, begun.line + 1}) {
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
