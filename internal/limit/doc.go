// Package limit parses the refusals of model providers and their reset times. Read is the only parser. The gateway
// passes it the provider's answer, the agents' adapters pass it a CLI's rendering. The same refusal gives the same kind
// on every path.
//
//	evidence.go  Evidence, Answer: the data of a refusal
//	read.go      Read, Reading: its meaning
//	words.go     words for used-up plans, request rates, busy providers and missing rights
//	table.go     wordings of other endings, with sources
//	line.go      refusals in plain output; errors shown as answers (Instead)
//	mention.go   texts that only mention a limit
//	header.go, reset.go, date.go
//	             resets in headers and sentences
//	bounds.go    bounds of a reset; rate limits that count as usage limits (weigh)
//	window.go    usage windows; pause.go: pauses before a request
package limit
