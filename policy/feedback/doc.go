// Package feedback judges whether a remark on a thread asks for work, and what it asks for. It is pure: what
// it needs to know of the thread and of GitHub is given as a Scene, and a judgement that needs what costs a
// request says so, so that the caller looks it up only then.
//
// A remark counts when somebody else than Pawl and its agent, who may write to the
// repository, says something that readers of the page can see.
//
//	question                                                     file
//	in which order is a remark judged, with which reasons        feedback.go, Judge
//	what is looked up before a remark counts, in which order     feedback.go, needs
//	what was caused by Pawl or written by its agent              feedback.go, causedByPawl
//	does a remark consist of words that an agent wrote, or Pawl  authored.go
//	which are a writer's own words, which ask for nothing        asking.go
//	who may ask, and which bots                                  feedback.go, mayWrite
//	what is the failure of a check of others                     checks.go, Classify
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
