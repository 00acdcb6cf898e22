// Package limit parses the refusals of model providers and their reset times. Read is the one parser: the gateway
// passes it the provider's own answer, the agents' adapters pass it a CLI's version of a refusal. The same refusal
// gives the same kind on every path.
//
//	what is known of a refusal                  evidence.go  Evidence, Answer
//	what it means                               read.go      Read, Reading
//	which words mean a used-up plan, haste,
//	a busy provider, a plan that lacks a thing  words.go     families of words
//	which sentences mean other endings          table.go     wordings, with sources
//	is a line of plain output a refusal         line.go      Evidence.isLine
//	is an error shown as an answer              line.go      Instead
//	does a text only mention a limit            mention.go   Mentioned
//	which header has the reset                  header.go    HeaderReset
//	which sentence has the reset                reset.go     ResetTime; date.go
//	when a rate limit counts as a usage limit   bounds.go    weigh
//	the bounds of one minute and eight days     bounds.go    Bound
package limit
