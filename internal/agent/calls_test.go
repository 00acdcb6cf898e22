package agent

import (
	"testing"
)

func TestRecentIDsAreRecognised(t *testing.T) {
	s := newIDs()
	for i := range uint64(5 * maxIDs) {
		s.Add(i, nil)
		if !s.Contains(i) || i >= maxIDs && !s.Contains(i-maxIDs+1) {
			t.Fatalf("after %d ids a recent one is forgotten", i)
		}
	}
	if s.Contains(uint64(0)) || s.Len() > maxIDs {
		t.Errorf("%d ids are stored", s.Len())
	}
}
