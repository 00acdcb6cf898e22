// Package web serves what people and machines outside GitHub look at: the status page, one page for each
// thread, health, readiness and metrics. It also mounts the webhook endpoint, which it knows nothing about.
//
// The pages are renderings of the same fold that the check runs show, plain HTML without scripts or outside
// resources. Every string in them may come from a stranger or an agent: it is cleaned of invisible characters,
// cut, and escaped by html/template, and only http and https addresses become links. The pages ask nobody for a
// login.
//
//	which addresses are served, how many requests at once?  web.go, New
//	how long may a slow client take?                        web.go, Server
//	what stands on the status page?                         status.go, statusData
//	what stands on a thread's page?                         thread.go, threadData
//	how is one attempt shown?                               thread.html; attempts.go
//	which fields of an event are shown?                     thread.go, shown
//	what is shown of the backends and of what was learned?  learning.go
//	what makes a server ready?                              health.go, newParts
//	which metrics are read from the store?                  metrics.go, descriptions
//	which metrics count what this process did?              metrics.go, Counters
//	which headers keep a page from being misused?           web.go, guard
//	how are times and numbers written?                      attempts.go; internal/text
//	how is hostile text made harmless?                      attempts.go, words; internal/text
package web
