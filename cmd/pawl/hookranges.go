package main

import (
	"context"
	"encoding/json"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
)

// hookRangesInterval is how often GitHub is asked where it sends webhooks from; it changes a few times a year.
const hookRangesInterval = time.Hour

// hookRanges are the addresses that GitHub sends webhooks from, as it said last, also before the last start.
type hookRanges struct {
	forge *forge.Client
	store *store.Store
	log   zerolog.Logger
	last  atomic.Pointer[[]netip.Prefix]
}

const hookRangesKey = "hook ranges"

func (h *hookRanges) known() []netip.Prefix {
	if all := h.last.Load(); all != nil {
		return *all
	}
	return nil
}

// load reads what was kept.
func (h *hookRanges) load(ctx context.Context) error {
	old, err := h.store.ReadShared(ctx, hookRangesKey)
	var kept []netip.Prefix
	if json.Unmarshal(old, &kept) == nil { // else they are asked for anew
		h.last.Store(&kept)
	}
	return err
}

// watch asks GitHub until ctx ends. While it does not answer, what it said last holds.
func (h *hookRanges) watch(ctx context.Context) {
	for {
		all, err := forge.HookRanges(ctx, h.forge)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			h.log.Warn().Err(err).Int("known", len(h.known())).Msg("where GitHub sends webhooks from was not learned; what it said before holds, and without that all addresses")
		default:
			kept, _ := json.Marshal(all) // prefixes, which can always be written
			if err := h.store.UpdateShared(ctx, hookRangesKey, func(time.Time, []byte) []byte { return kept }); err != nil && ctx.Err() == nil {
				h.log.Warn().Err(err).Msg("where GitHub sends webhooks from was not kept")
			}
			h.last.Store(&all) // after it is kept: what holds once holds after a restart
		}
		if wait.For(ctx, hookRangesInterval) != nil {
			return
		}
	}
}
