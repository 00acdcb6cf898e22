// Package fakegithub is a GitHub on loopback that speaks the wire protocol: the
// REST API below /api/v3, signed webhooks, and git over smart HTTP on real bare
// repositories. The demo, the end-to-end tests and the benchmarks run against
// it. It answers what Pawl and the agents of the tests ask, and there it follows
// what GitHub documents (field names, status codes, limits), not what Pawl happens
// to use, because Pawl also runs against other implementations of the same API.
//
// A Server has two sides. The wire side is what an App and git see. The other
// side is methods: people acting (Comment, EditBody, PushCommit, ClickButton),
// faults (Inject, Hold, Drop, RevokeTokens) and readers (Comments, CheckRuns,
// Requests). Inside, the server is put together from parts by what they are about
// (issues, pulls, checks, …); each part holds its REST operations, what they
// change, and the acts of people on the same things. Repositories are named
// "owner/name" throughout; they are private unless Publish is called, and have no forks; every access is
// authenticated and every permission is checked.
//
// Deliveries are sent one at a time in the order in which things happened,
// unless a test holds, drops, duplicates or reorders them. What the App itself
// does is delivered as well, as GitHub does.
//
// The tests check every payload and every answer against testdata/shapes.txt,
// a table of the documented keys and types. Where GitHub documents nothing (the
// wording of most refusals, the order of the events of one push) this package
// follows what has been reported of it and says so.
//
// Where to look:
//
//	What can be called, with which permission?              api.go (routeTable)
//	How is a request answered, from first byte to last?     api.go (serveREST)
//	Which parts has a server; what is an answer?            server.go; reply.go
//	Who is the caller, and what may they do?                auth.go
//	What does GitHub remember?                              world.go
//	How does an event become a delivery?                    webhooks.go (emit)
//	How are deliveries sent, signed and recorded?           webhooks.go
//	How does a test hold, drop or redeliver them?           deliveries.go
//	What does a JSON object look like?                      render.go
//	Which limits are there, and who checks that an App
//	keeps to them (Strict, Violations)?                     limits.go
//	How does a request go wrong (Inject); what was called?  faults.go
//	What can be asked and changed by GraphQL?               graphql.go, mutations.go, schema.graphql
//	Apps, installations, the manifest flow                  apps.go
//	The login of people with the App                        oauth.go
//	People, bots, roles, tokens                             auth.go
//	Repositories; git in them, with few processes           repos.go; git.go
//	What follows a push                                     pushes.go
//	Git over HTTP                                           githttp.go
//	Issues and labels; comments and reactions               issues.go
//	What labels and assignments do; attachments             labels.go, attachments.go
//	Pull requests and reviews                               pulls.go
//	Check runs and buttons; what GitHub refuses of them     checks.go, checkrules.go
//	Jobs of GitHub Actions and their logs                   jobs.go
//	Workflow runs, their failed jobs run again; comparisons runs.go
//	What a maintainer sees, for tests                       readers.go
package fakegithub
