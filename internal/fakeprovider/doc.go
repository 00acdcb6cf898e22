// Package fakeprovider is a model provider on loopback for tests and the demo. Real agent CLIs use it like OpenAI
// (Responses and chat completions), Anthropic (Messages) or Google (Gemini).
//
// The path of a request selects the protocol, and its /s/ prefix selects the scenario. For example, /s/edit-success/…
// creates a file, and /s/usage-limit/… answers with the protocol's usage limit and reset time. See Scenarios. Answers
// depend only on the request's conversation, so concurrent runs are independent. Scenarios with memory (fail twice,
// then work) keep it per URL: /s/transient-429~a/… and /s/transient-429~b/… are separate.
//
// Answers and errors follow the providers' documentation and recorded CLI sessions.
//
//	server.go     settings, received requests
//	scenarios.go  the scenarios
//	turn.go       the state of a request's conversation
//	answer.go     complete, cut and hanging answers
//	failures.go   each provider's limits and failures
//	tools.go      operations as calls to a CLI's tools
//	responses.go, chat.go, anthropic.go, gemini.go
//	              the protocols
package fakeprovider
