// Package attempt runs one attempt: it turns a prepared repository into a verified, pushed commit and a receipt.
//
//	attempt.go             an attempt from start to end; answers and plans
//	env.go                 what attempts share; folders; a full disk
//	start.go, context.go   effort, session, prompt; the discussion in the prompt
//	ground.go              branches, configuration and start commit
//	run.go, home.go        the agent's process, HOME and test tool
//	gateway.go, seen.go    access to the model, budgets, the gateway's result
//	watch.go, loop.go      stops, outages of GitHub; loops
//	steer.go               texts for the running agent
//	checkout.go, update.go commits, pushes and merges; merging the base
//	setup.go, footing.go   setup commands, layers and images
//	verify.go, judge.go    verify commands; judges
//	baseline.go            verification of the base; test evidence
//	leaks.go, authored.go  secrets in commits; logged text of agents
//	finish.go, handover.go receipts, breakers and hidden secrets; unfinished work
//	transcript.go          the agent's output
package attempt
