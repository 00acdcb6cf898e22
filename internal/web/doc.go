// Package web serves the pages, health, readiness and metrics. It also mounts the webhook endpoint.
// The pages render the same fold as the check runs. They are plain HTML without outside resources, and work without scripts.
// Any string may come from a stranger or an agent: it is stripped of invisible characters, cut, and escaped by
// html/template. Only http and https addresses become links.
//
//	which addresses are served, how many requests at once?  web.go, Public, Pages, addPages
//	how long may a slow client take?                        web.go, Server
//	how many connections are open at a time?                web.go, Listen
//	who may see and do what, how is a button registered?    access.go
//	who may see and do what, how is a button registered?    access.go
//	how do people sign in, what does a session hold?        login.go; session.go
//	whose address does a request come from?                 client.go
//	how are threads searched and listed? what is cached?    threads.go, index
//	what does a thread's page show?                         thread.go, threadData; timeline.go
//	how is one attempt shown?                               thread.html; timeline.go, attempted
//	how is a running attempt followed, how is a log read?   live.go, page.js; solver/attempt, Transcript
//	which buttons exist, and what do they do?               orders.go; internal/orders
//	what do the pages of accounts, backends, costs show?    accounts.go; costs.go; learning.go
//	which fields of an event are shown?                     thread.go, shown
//	what makes a server ready?                              health.go, newParts
//	which metrics are read from the store?                  metrics.go, scrape
//	which metrics count what this process did?              metrics.go, Counters
//	which headers keep a page from being misused?           web.go, guard
//	how are times and numbers written?                      attempts.go; internal/render
//	how is hostile text made harmless?                      attempts.go, words; internal/render
package web
