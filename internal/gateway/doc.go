// Package gateway is a reverse proxy between agents and model providers. An agent calls its attempt's listener with the
// attempt's token; the gateway adds the provider's key.
//
// The gateway allows only needed paths, asks the breaker and the budget, and counts tokens while the answer passes. With
// rung 1 it holds an answer until its first word or tool call, and retries an empty one. Agents' input is hostile: sizes
// are limited, headers and queries pass by allowlist, and redirects are not followed.
//
//	gateway.go, session.go an attempt's access, use and fruitless calls
//	call.go, route.go      steps and limits of a call; paths and headers
//	request.go, form.go    requests and JSON; kinds of calls
//	denied.go, refer.go    denied fields; references in conversations
//	tools.go               allowed tools
//	upstream.go, relay.go  the provider's call and answer; other nodes' calls
//	events.go, read.go, answer.go   events; tokens, text and tool calls
//	rung.go, prose.go      second tries; too much prose
//	budget.go              budgets and costs
//	refuse.go              refusals
//	list.go                a provider's models
package gateway
