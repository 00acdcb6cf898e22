package agent

// maxIDs is how many calls of a session are known again for sure. Real sessions
// have some hundred.
const maxIDs = 25_000

// idSet holds the last ids that were added to it, by their hashes: at least
// maxIDs of them and at most twice as many. An older id is forgotten, and what
// comes under it again counts as new. The zero value is empty.
type idSet struct {
	recent, older map[uint64]struct{}
}

func (s *idSet) add(id uint64) {
	if len(s.recent) >= maxIDs {
		s.older, s.recent = s.recent, nil
	}
	if s.recent == nil {
		s.recent = map[uint64]struct{}{}
	}
	s.recent[id] = struct{}{}
}

func (s *idSet) has(id uint64) bool {
	if _, found := s.recent[id]; found {
		return true
	}
	_, found := s.older[id]
	return found
}
