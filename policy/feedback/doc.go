// Package feedback judges whether a remark on a thread asks for work, and for what. It is pure: a Scene holds what
// it needs to know of the thread and of GitHub. A judgement that needs a request to GitHub says so, so the caller
// makes it only then.
//
// A remark counts if its writer is neither Pawl nor its agent, may write to the repository, and says something
// visible.
//
//	question                                                     file
//	in which order is a remark judged, with which reasons        feedback.go, Judge
//	what is looked up before a remark counts, in which order     feedback.go, needs
//	what was caused by Pawl or written by its agent              feedback.go, causedByPawl
//	does a remark consist of words of an agent or of Pawl        authored.go
//	which are a writer's own words, which ask for nothing        asking.go
//	who may ask, and which bots                                  feedback.go, mayWrite
//	how is another check's failure classified                    checks.go, Classify
//	how much a remark matters to its reviewer                    asking.go
//	which remarks come at a program's pace                       asking.go, Mechanical
//	which failures of checks lie outside of the work             outside.go
//	which commands are there, and where may they stand           command.go
//	why is a ticked box or a new time stamp of a description
//	no feedback                                                  description.go, Content and onlyMoves
//	what of an edited description is new                         description.go, DescriptionDiff
//	what does a reader see of a text (prompts are made of it)    visible.go, Visible
//	what is a quotation, code or an HTML comment                 markdown.go, readPage
//	what of a mail is quoted                                     markdown.go
//	to which triggers does a repository listen                   command.go, Triggers
package feedback
