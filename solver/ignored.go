package solver

import "slices"

// maxIgnored bounds the ignored remarks that a state remembers: the newest tell
// why something was not acted on, and anybody can add to them.
const maxIgnored = 100

func (s *State) ignored(e Event, f Feedback) {
	s.see(f.Snapshot)
	f.Seq, f.At = e.Seq, e.At
	s.checked(f)
	s.Ignored = append(s.Ignored, f)
	if len(s.Ignored) > maxIgnored {
		// Edits back still decide over edits that come late, so others go first.
		oldest := max(0, slices.IndexFunc(s.Ignored, func(f Feedback) bool { return f.Description == "" }))
		s.Ignored = slices.Delete(s.Ignored, oldest, oldest+1)
	}
	if f.Description != "" {
		s.read(f)
		s.editedBack(f)
	}
}
