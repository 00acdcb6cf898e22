// Package gateway is the door between agents and the providers of their models.
// It is a reverse proxy on the host's loopback to which the base URL of an agent
// points. The agent holds a token of one attempt; the provider's key stays here.
//
// A call goes through in this order: the token is looked up, the path must be
// one of the few that agents need, the breaker's word and the attempt's budget
// are asked, the call is sent with the provider's key, and the answer is passed
// on as it comes while its tokens are counted and refusals are read. An answer
// that comes to nothing is tried once more within the same answer (rung 1).
//
// What an agent sends is hostile: sizes are bounded, headers and queries pass by
// allowlist, and redirects of a provider are not followed.
package gateway
