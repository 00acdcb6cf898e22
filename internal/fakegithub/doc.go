// Package fakegithub is a GitHub on loopback that speaks the wire protocol: the
// REST API below /api/v3, signed webhooks, and git over smart HTTP on real bare
// repositories. The demo, the end-to-end tests and the benchmarks run against
// it. It follows what GitHub documents (field names, status codes, limits), not
// what Pawl happens to use, because Pawl also runs against other
// implementations of the same API.
//
// A Server has two sides. The wire side is what an App and git see. The other
// side is methods: people acting (Comment, EditBody, PushCommit, ClickButton),
// faults (Inject, Hold, Drop, RevokeTokens) and readers (Comments, CheckRuns,
// Requests). Repositories are named "owner/name" throughout; they are private
// unless MakePublic is called, so every access is authenticated and every
// permission is checked.
//
// Deliveries are sent one at a time in the order in which things happened,
// unless a test holds, drops, duplicates or reorders them. What the App itself
// does is delivered as well, as GitHub does.
//
// The tests check every payload and every answer against testdata/shapes.txt,
// a table of the documented keys and types. Where GitHub documents nothing (the
// wording of most refusals, the order of the events of one push) this package
// follows what has been reported of it and says so.
package fakegithub
