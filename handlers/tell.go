package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// refusedKey names, among what the nodes share, who was told when that they may give no orders, by their ids.
const refusedKey = "refused"

// maxRefused bounds how many people are told so in 24 hours: anybody may write to a public repository.
const maxRefused = 100

// tell is what somebody is told of a remark of which nothing comes: once a day that they may give no orders, and once on
// a thread that a mention within a line is none.
func (h *Handlers) tell(ctx context.Context, it Activity, f thread.Feedback, j feedback.Judgement) ([]thread.NewEvent, error) {
	e := thread.NewEvent{Kind: thread.KindQuestion, At: h.Now()}
	if f.Command = j.Tell; j.Tell == feedback.NoOrder {
		e.Key = fmt.Sprintf("%s:%d", j.Tell, it.Number)
	} else if first, err := h.firstToday(ctx, f.By); !first || err != nil {
		return nil, err
	}
	e.Data = thread.Question{Feedback: f, Private: it.private}
	return []thread.NewEvent{e}, nil
}

// firstToday reports whether nobody was told so in the last 24 hours, and notes it.
func (h *Handlers) firstToday(ctx context.Context, who feedback.Actor) (first bool, err error) {
	err = h.Store.UpdateShared(ctx, refusedKey, func(now time.Time, old []byte) []byte {
		told := map[int64]time.Time{}
		_ = json.Unmarshal(old, &told) // what cannot be read is as if nobody had been told
		for id, at := range told {
			if now.Sub(at).Abs() >= 24*time.Hour {
				delete(told, id)
			}
		}
		_, known := told[who.ID]
		if first = !known && len(told) < maxRefused; !first {
			return nil
		}
		told[who.ID] = now
		next, _ := json.Marshal(told) // ids and times, which can always be written
		return next
	})
	return first, err
}
