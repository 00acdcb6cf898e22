// Package limit reads the refusals of model providers and the times of their
// resets, for whoever meets them: the agents' streams, which hold the text that a
// CLI made of a refusal, and the gateway, which sees the provider's own answer.
//
//	which wording stands for which ending          table.go    families, with sources; wording.go  Classify
//	which HTTP status stands for which ending      wording.go  OfStatus
//	is a line of plain output a limit message      wording.go  IsMessage
//	does a text only mention a limit               wording.go  Mentioned
//	which name of an error stands for which limit  answer.go   meanings
//	is a provider's answer a limit                 answer.go   Answer.Limit
//	does it hold for every model of the account    answer.go   Answer.OfAccount
//	which header or field tells the reset          answer.go   HeaderReset, Answer.reset
//	which sentence tells the reset                 reset.go    ResetTime; date.go
//	when a rate limit counts as a usage limit      wording.go  Weigh
//	the bounds of one minute and eight days        wording.go  Bound
package limit
