// Package fakegithub is a fake GitHub on loopback: the REST API below /api/v3, GraphQL, signed webhooks, and git over
// smart HTTP on real bare repositories. The demo, the end-to-end tests and the benchmarks use it. It serves the
// requests of Pawl and of the tests' agents, and follows GitHub's documentation (field names, status codes, limits).
//
// Apps and git use the wire. Tests use methods: users' acts (Comment, EditBody, PushCommit, ClickButton), faults
// (Inject, Hold, Drop, RevokeTokens) and readers (Comments, CheckRuns, Requests). Each part of the server (issues,
// pulls, checks, …) has its REST operations and the users' acts on the same objects. Repositories are named
// "owner/name", private unless Publish is called, and have no forks. Every access is authenticated and checked.
//
// Deliveries are sent one at a time in order, unless a test holds, drops, duplicates or reorders them. The App's own
// acts are delivered too, as at GitHub.
//
// Tests check all payloads and answers against testdata/shapes.txt, a table of the documented keys and types.
// Undocumented behaviour (wording of refusals, order of a push's events) follows reports. Comments mark it.
//
//	api.go                     routes with permissions (routeTable), requests (serveREST)
//	server.go, reply.go        the server's parts; answers
//	auth.go, oauth.go          callers, users, bots, roles, tokens; logins
//	world.go, render.go        GitHub's state; its JSON objects
//	webhooks.go, deliveries.go events (emit), sending; held, dropped, repeated deliveries
//	limits.go, faults.go       limits (Strict, Violations); faults (Inject), request log
//	graphql.go, mutations.go   GraphQL, with schema.graphql
//	apps.go                    Apps, installations, the manifest flow
//	repos.go, pushes.go        repositories; effects of a push
//	git.go, githttp.go         git repositories; git over HTTP
//	issues.go, labels.go       issues, comments, reactions; labels, assignments
//	pulls.go, attachments.go   pull requests, reviews; attached files
//	checks.go, checkrules.go   check runs, buttons; their limits
//	jobs.go, runs.go           jobs of GitHub Actions with logs; workflow runs
//	protection.go, readers.go  branch protection, drafts; a maintainer's view, for tests
package fakegithub
