package policy

import "time"

// Window is a reading of one usage window of an account, such as the five hours of a subscription.
type Window struct {
	Name     string        `json:"name"`                // such as 5h, 7d or 7d_oi
	Used     float64       `json:"used"`                // the used share; 1 is full, and providers report more
	ResetsAt time.Time     `json:"resets_at,omitzero"`  // zero if the provider did not report it
	SeenAt   time.Time     `json:"seen_at"`             // when the provider reported it
	Length   time.Duration `json:"length_ns,omitempty"` // 0 if unknown
}

// Current reports whether the reading still holds: a window whose reset is unknown or over is unknown.
func (w Window) Current(now time.Time) bool { return w.ResetsAt.After(now) }
