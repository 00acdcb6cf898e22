// Package web serves what people and machines outside GitHub look at: the pages, health, readiness and metrics. It also
// mounts the webhook endpoint, which it knows nothing about.
//
// The pages are renderings of the same fold that the check runs show, plain HTML without outside resources, that can be
// read and used without scripts. Every string in them may come from a stranger or an agent: it is cleaned of invisible
// characters, cut, and escaped by html/template, and only http and https addresses become links.
//
//	which addresses are served, how many requests at once?  web.go, Public, Pages, addPages
//	how long may a slow client take?                        web.go, Server
//	how many connections are open at a time?                web.go, Listen
//	who may see and do what, how is a button registered?    access.go
//	under which names are the pages served?                 guard.go
//	how do people sign in, what does a session hold?        login.go; session.go
//	whose address does a request come from?                 client.go
//	how are threads looked for and listed?                  threads.go; what is remembered for that: index
//	what stands on a thread's page?                         thread.go, threadData; timeline.go
//	how is one attempt shown?                               thread.html; timeline.go, attempted
//	how is a running attempt followed, how is a log read?   live.go, page.js; solver/attempt, Transcript
//	which buttons are there, and what do they do?           orders.go; internal/orders
//	what stands on the pages of accounts, backends, costs?  accounts.go; costs.go; learning.go
//	which fields of an event are shown?                     thread.go, shown
//	what makes a server ready?                              health.go, newParts
//	which metrics are read from the store?                  metrics.go, scrape
//	which metrics count what this process did?              metrics.go, Counters
//	which headers keep a page from being misused?           web.go, guard
//	how are times and numbers written?                      attempts.go; internal/render
//	how is hostile text made harmless?                      attempts.go, words; internal/render
package web
