package handlers

import (
	"context"
	"testing"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/handlers/handlerstest"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/attempt"
)

const testRepo = handlerstest.Repo

// rig connects the real ingress, handlers and SQLite store to a fake GitHub.
type rig struct {
	*handlerstest.World
	h *Handlers
}

func newRig(t *testing.T) *rig {
	t.Helper()
	w := &rig{World: handlerstest.New(t)}
	w.h = &Handlers{Store: w.Store, Forge: w.Forge, Now: w.Now, Solver: &solver.Solver{Env: attempt.Env{Store: w.Store, Now: w.Now, Config: config.Server{Backends: backends("one", "two", "codex", "mine", "claude")}}}}
	w.Deliver = w.h.Deliver
	w.serve(handlerstest.Secret)
	w.Install()
	return w
}

// serve handles webhooks signed with a secret.
func (w *rig) serve(secret string) {
	w.T.Helper()
	in, err := NewIngress([]string{secret}, w.h.EventHandlers(), w.Store, w.Now, zerolog.Nop())
	w.Must(err)
	w.Serve(in)
}

// handleComment handles a delivery about a comment and returns its note.
func handleComment(ctx context.Context, h *Handlers, guid string, payload []byte) (note string, err error) {
	activities, err := read(payload, issueComment)
	if err != nil {
		return "", err
	}
	return h.appendAll(ctx, "issue_comment", guid, activities)
}

func backends(names ...string) (all []config.Backend) {
	for _, n := range names {
		all = append(all, config.NewBackend(n, config.Codex))
	}
	return all
}
