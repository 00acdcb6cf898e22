// Package fakeprovider is a model provider on loopback for tests and the demo. Real agent CLIs use it like OpenAI
// (Responses and chat completions), Anthropic (Messages) or Google (Gemini).
//
// A request's path chooses the protocol, and the base URL the scenario: /s/edit-success/… creates a file,
// /s/usage-limit/… refuses with the protocol's limit and its reset; see Scenarios. Answers depend only on the request's
// conversation, so concurrent runs are independent. Scenarios with memory (fail twice, then work) remember by URL:
// /s/transient-429~a/… and /s/transient-429~b/… are separate.
//
// Answers and errors follow the providers' documentation and the recorded CLIs.
//
//	server.go     settings, received requests
//	scenarios.go  the scenarios
//	turn.go       the state of a request's conversation
//	answer.go     written, cut and hanging answers
//	failures.go   each provider's limits and failures
//	tools.go      edits as calls of a CLI's tools
//	responses.go, chat.go, anthropic.go, gemini.go
//	              the protocols
package fakeprovider
