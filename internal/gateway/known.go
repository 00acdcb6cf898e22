package gateway

import (
	"hash/maphash"
	"slices"

	"github.com/tidwall/gjson"
)

// known is the beginning of a conversation that was looked at in an earlier request of the attempt. Agents send the whole
// conversation at each turn, so a look at what follows is all that most requests need. The zero value knows nothing.
//
// What lies between from and to, the ends of two elements of the conversation, may be left out of the look at another
// request of this kind that begins with the same bytes: the rest is JSON if the whole is, and only then, and whatever
// else it says is the same.
type known struct {
	kind     callKind
	from, to int    // in bytes of the request
	head     uint64 // stands for the bytes before from
	sum      uint64 // for those before to
	offers   bool   // an item of it adds tools
}

// sums seeds the hashes of requests, so that nobody makes two that collide.
var sums = maphash.MakeSeed()

// maxKnown is how many beginnings an attempt has: an agent with helpers has several conversations, and some CLIs mark the
// end of theirs, so that an older beginning still stands where a newer one does not.
const maxKnown = 8

// knows gives what is known of a request.
func (s *Session) knows(kind callKind, body string) known {
	s.mu.Lock()
	all := slices.Clone(s.known)
	s.mu.Unlock()
	for _, k := range slices.Backward(all) {
		if k.kind == kind && k.to < len(body) && maphash.String(sums, body[:k.from]) == k.head && maphash.String(sums, body[:k.to]) == k.sum {
			return k
		}
	}
	return known{}
}

func (s *Session) learns(k known) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if k.to > k.from && !slices.Contains(s.known, k) {
		s.known = append(s.known[max(len(s.known)-maxKnown+1, 0):], k)
	}
}

// rest is the request without what is known of it.
func (k known) rest(body string) string { return body[:k.from] + body[k.to:] }

// whole is a value of the rest that what is known belongs to, as it stands in the request.
func (k known) whole(body string, v gjson.Result) gjson.Result {
	return gjson.Parse(body[v.Index : v.Index+len(v.Raw)+k.to-k.from])
}

// after is what is known when the rest was looked at, too: all of the conversation but its last element.
func (k known) after(kind callKind, body string, conversation gjson.Result, offers bool) known {
	if !conversation.IsArray() {
		return known{}
	}
	first, before, end := 0, 0, 0 // where the first element, the one before the last and the last end
	conversation.ForEach(func(_, entry gjson.Result) bool {
		before, end = end, entry.Index+len(entry.Raw)
		if first == 0 {
			first = end
		}
		return entry.IsObject()
	})
	next := known{kind: kind, from: first, to: before + k.to - k.from, head: k.head, sum: k.sum, offers: offers}
	if before < first {
		return known{}
	}
	if next.to != k.to {
		next.head, next.sum = maphash.String(sums, body[:first]), maphash.String(sums, body[:next.to])
	}
	return next
}
