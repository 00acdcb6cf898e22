// Package checkrun renders everything that Pawl writes on GitHub: its check runs, the status comment,
// the block in a pull request's description and the answers to commands.
//
// Every function is pure: the same facts give the same bytes. All strings in the facts are taken as hostile,
// of any author. They appear only as inline code, in fenced blocks, or as words that Markdown and GitHub
// take for nothing but words, so none of them can mention a user, refer to an issue, link, load a picture,
// close a block or forge one of Pawl's markers.
//
//	what is known of a thread?                            checkrun.go, View
//	which conclusion has a stopped or failed run?         run.go, State.shown
//	where do the words of a title come from?              run.go, Headline; policy.Rule.Words
//	what happens next, and what can a user do?            run.go, outlook
//	which buttons fit a state?                            checkrun.go, buttons
//	how does a configuration error get its line?          run.go, annotations
//	which columns has the table of attempts?              attempts.go, table
//	how is a recovery shown, and what it cost?            attempts.go, rungs
//	what is folded away, and what is quoted how long?     attempts.go, addDetails
//	when is a check run left out?                         verdicts.go, Speaks
//	when does pawl/severity fail?                         verdicts.go, conclusions
//	when does pawl/stagnation ask a user to act?          verdicts.go, stagnation
//	the status comment, and what is answered                   comment.go
//	what of a pull request's description is Pawl's?       comment.go, PullBody
//	what is left out of a text that is too long?          checkrun.go, page
//	how is hostile text made harmless?                    internal/render
package checkrun
