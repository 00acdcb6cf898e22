// Package web serves the pages, health, readiness and metrics, and mounts the webhook endpoint. The pages are plain HTML
// without outside resources and work without scripts. Foreign text is cleaned, cut, and escaped by html/template. Only
// http and https addresses become links.
//
//	web.go                 addresses, limits of requests and connections, headers
//	access.go, client.go   permissions, buttons; client addresses
//	login.go, session.go   sign-in and sessions
//	threads.go             search and list of threads
//	thread.go, timeline.go a thread's page
//	live.go, page.js       running attempts and logs
//	buttons.go             buttons; see internal/commands
//	accounts.go, costs.go, learning.go   accounts, costs, backends
//	health.go, metrics.go  readiness and metrics
//	attempts.go            formatting of foreign text, times and numbers; see internal/render
package web
