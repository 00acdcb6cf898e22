// Package forge is Pawl's client for GitHub: one small method for each call, with small types, over go-github. It
// handles GitHub's failures: tokens that expire during a run, lost answers, limits, renamed repositories and
// removed installations. It decides nothing about threads and stores nothing.
//
// A client has a service for each kind of object, as in client.PullRequests.Edit. Each call is one use of go-github
// over a chain of RoundTrippers, and ends as one error:
//
//	retrying → refreshing → pacing → authorizing → caching → wire → Clock → GitHub
//
// The callers' errors when GitHub fails: during an outage, ErrUnavailable after three tries and some seconds (a
// write is tried once and then looked up, and never done twice); after a 401 one fresh token, and ErrUnauthorized
// for a second one; for a limit a wait of up to 30 s in all (client.go, defaultMaxWait), by retry-after, else the
// reset, else a minute that doubles each time, and for a longer one a *RateLimited at once; ErrForbidden for a 403
// that names no limit. A try of more than 30 s counts as no answer. Every error is an *Error, a *RateLimited or a
// *Moved, or the context's own.
//
//	question                                             file
//	where is a token made, kept and replaced?            app.go (Token), retry.go (refreshing, authorizing)
//	how often is a call repeated, and after which wait?   retry.go
//	where is a write looked up before it is repeated?    retry.go (afterFailure); each request's find
//	what goes over the wire, and in which order?         call.go (chain, wire)
//	who has to wait, and how long?                       limiter.go (pacing, enter, urgency)
//	what are GitHub's limits, and when is one used up?   limits.go (admit)
//	where is a secondary limit obeyed?                   answer.go (limitEnds), limits.go (answered)
//	what if the lease is lost while a request waits?     retry.go (Fenced)
//	what is asked with an ETag?                          cache.go
//	what does an answer mean: limit, refusal, no answer? answer.go (class)
//	which errors are there, with which hints?            errors.go (explain)
//	where is a renamed repository found out?             errors.go (redirected), client.go (on)
//	who is the App, and its bot user?                    app.go; one made from a manifest, too
//	how long may a text be, and how is it cut?           issues.go (clip)
//	check runs, buttons, annotations                     checks.go
//	issues, comments, reactions, pull requests           issues.go
//	discussions, by GraphQL                              discussion.go
//	which pictures are read, from where                  pictures.go
//	deliveries and changes that were missed              missed.go
//	issues by their label                                missed.go
//	what the log of a failing job says                   logs.go
//	permissions, the default branch                      client.go
//	how far is this node's clock from GitHub's?          clock.go
package forge
