// Package fakeprovider is a model provider for tests and for the demo: an HTTP
// server on loopback that the real agent CLIs talk to as if it were OpenAI
// (Responses and chat completions), Anthropic (Messages) or Google (Gemini).
//
// The path of a request chooses the protocol, the base URL chooses what the
// provider does: /s/edit-success/… has the agent create a file, /s/usage-limit/…
// refuses with the limit of the protocol and its reset, and so on; see
// Scenarios. What a request gets is derived from the conversation that it
// carries, so that runs at the same time do not disturb each other. Where a
// scenario has to remember (it fails twice, then works), it remembers by
// scenario URL: /s/transient-429~a/… and /s/transient-429~b/… are apart.
//
// The shapes of answers and errors follow what the providers document and what
// the CLIs were recorded to understand.
//
// Where to look:
//
//	What can a test set, and what did the provider receive?   server.go
//	What does each scenario do?                               scenarios.go
//	Where does a conversation stand when a request arrives?   turn.go
//	How is an answer written, cut off or left hanging?        answer.go
//	How does each provider word a limit or another failure?   failures.go
//	How does an edit become a call of the CLI's own tool?     tools.go
//	The protocols                                             responses.go, chat.go, anthropic.go, gemini.go
package fakeprovider
