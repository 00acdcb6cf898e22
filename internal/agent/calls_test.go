package agent

import (
	"testing"
)

func TestAnIDIsKnownAgainAmongTheLastOnes(t *testing.T) {
	var s idSet
	for i := range uint64(5 * maxIDs) {
		s.add(i)
		if !s.has(i) || i >= maxIDs && !s.has(i-maxIDs+1) {
			t.Fatalf("after %d ids one of the last is forgotten", i)
		}
	}
	if s.has(0) || len(s.recent)+len(s.older) > 2*maxIDs {
		t.Errorf("%d ids are held", len(s.recent)+len(s.older))
	}
}
