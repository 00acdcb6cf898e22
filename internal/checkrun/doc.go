// Package checkrun renders everything that Pawl writes on GitHub: its check runs, the status comment,
// the block in a pull request's description and the answers to commands.
//
// Every function is pure: the same facts give the same bytes. All strings in the facts count as hostile. They appear
// only as inline code, in fenced blocks, or as plain words. So no string can mention a user, refer to an issue, link,
// load a picture, close a block or forge one of Pawl's markers.
//
//	what is known about a thread?                         checkrun.go, View
//	which conclusion does a stopped or failed run get?    run.go, State.shown
//	where do the words of a title come from?              run.go, Headline; policy.Rule.Words
//	what happens next, and what can a user do?            lead.go, outlook
//	which buttons fit a state?                            checkrun.go, buttons
//	how does a configuration error get its line?          run.go, annotations
//	which columns does the table of attempts have?        attempts.go, table
//	how are a recovery and its cost shown?                attempts.go, rungs
//	what is folded, and how long are quotes?              attempts.go, addDetails
//	when is a check run left out?                         verdicts.go, Speaks
//	when does pawl/severity fail?                         verdicts.go, conclusions
//	when does pawl/stagnation ask a user to act?          verdicts.go, stagnation
//	the status comment, and the answers to commands       comment.go
//	which part of a pull request's description is Pawl's? comment.go, PullBody
//	how is a text shortened that is too long?             checkrun.go, page
//	how is hostile text made harmless?                    internal/render
package checkrun
