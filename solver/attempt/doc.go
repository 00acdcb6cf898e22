// Package attempt carries out one attempt: from a prepared repository to a verified and pushed commit, with a
// receipt. For GitHub and a local folder the solver gives different values. Git, the sandbox and the agent are
// behind Executor.
//
//	question                                                       file
//	what do the attempts of a process share, which folders are used env.go
//	what is an attempt, from its start to its end                   attempt.go
//	with which effort and session does it begin, what is the prompt start.go
//	what part of the discussion is in the prompt                    context.go
//	which branches and which configuration does it begin with       ground.go
//	what is committed, pushed and merged, and to which branch       checkout.go
//	how is the base merged, which conflicts are refused             update.go
//	how is the agent started, what does it find in its HOME         run.go, home.go
//	where does a stop end it, what while GitHub is away at the push watch.go
//	how does it reach its model, what may it spend                  gateway.go
//	what does the gateway say of its end                            seen.go
//	when is it cut off as a loop                                    loop.go
//	how is the work verified, in which files and HOME               verify.go
//	what do the tests say of a change to the tests                  baseline.go
//	what do the commands say on the base                            baseline.go
//	what does an attempt find in HOME and ignored files, setup      setup.go, footing.go
//	what does the operator's judge say                              verify.go
//	what does the built-in judge ask, when is it believed           judge.go
//	how does the agent get run_tests, what did it call              home.go
//	what is kept of one whose server stops or was killed            handover.go, finish.go (Salvage)
//	where does the next one go on                                   ground.go (goOn)
//	how does one end that only answers or plans, what did one say   attempt.go (Run, Report)
//	what does the receipt say, what does the breaker hear           finish.go
//	how are secrets kept out of receipts                            finish.go (Hide)
//	which secrets stop a commit                                     leaks.go
//	which of the agent's texts are logged, did it write a remark    authored.go
//	where is the transcript, how is it read again                   transcript.go
//	what happens while the disk is full, which folders go           env.go
package attempt
