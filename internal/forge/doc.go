// Package forge accesses GitHub with one small method per call, over go-github. It handles expired tokens, lost
// answers, limits, renamed repositories and removed installations. It stores nothing.
//
// Each call passes through a chain of RoundTrippers and returns one error:
//
//	retrying → refreshing → pacing → authorizing → caching → wire → Clock → GitHub
//
// Errors are an *Error, a *RateLimited, a *Moved, or the context's:
//
//   - Outage: ErrUnavailable after three tries. Pawl looks up a creation before it repeats the request.
//   - 401: one fresh token, then ErrUnauthorized.
//   - Limit: a wait of up to defaultMaxWait (30 s), or a *RateLimited at once.
//   - 403 without a limit: ErrForbidden.
//   - No answer within TryTimeout (30 s) counts as an outage.
//
// Files:
//
//	client.go       client, repositories, permissions
//	call.go         requests and the chain
//	retry.go        repeats, lost answers, fresh tokens, lost leases (Fenced)
//	limiter.go      order and waits of requests
//	limits.go       GitHub's limits
//	answer.go       limit, refusal, or no answer
//	errors.go       errors and hints; renames
//	cache.go        ETags
//	app.go          the App, its bot user and tokens
//	issues.go       issues, comments, reactions, pull requests
//	checks.go       check runs, buttons, annotations
//	discussion.go   discussions by GraphQL
//	pictures.go     attached pictures
//	missed.go       missed deliveries and changes
//	logs.go         logs of failed jobs
//	clock.go        difference between the clocks
package forge
