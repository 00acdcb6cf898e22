// Package gateway is a reverse proxy between agents and their models' providers. An agent's base URL points to its
// attempt's listener. The agent has the attempt's token; the provider's key stays here.
//
// For each call the gateway compares the token, allows only the paths that agents need, asks the breaker and the
// attempt's budget, and sends the call with the provider's key. The answer passes as it comes, while the gateway
// counts tokens and reads refusals. With rung 1 an answer is held back until its first word or tool call, and one
// without either is requested again.
//
// An agent's input is hostile: sizes are bounded, headers and queries pass by allowlist, and a provider's redirects
// are not followed.
//
//	question                                                      file
//	how does a call go through, and what is bounded on its way    call.go
//	which paths are there, and where do they go                   route.go
//	which headers pass, and where is the key put in               route.go
//	what may a request ask for                                    request.go
//	how do the kinds of calls differ                              form.go
//	which fields of a request are denied                          denied.go
//	when is a conversation read for references                    refer.go
//	which tools may a request offer                               tools.go
//	how is a provider asked for its models                        list.go
//	how is a provider called, and what of its answer passes       upstream.go
//	how is a stream parted into events                            events.go (splitter)
//	how are tokens, text and tool calls read of an answer         read.go, answer.go
//	when is an answer requested again                             rung.go
//	which is the opposite thinking mode                           rung.go (opposite)
//	when is an answer too much prose                              prose.go
//	when does an attempt get nowhere at its provider              session.go (heard)
//	what may an attempt use, and what did it use                  session.go, budget.go
//	what does a model cost                                        budget.go (cost), ../../config/models.go
//	what does an agent see that is refused                        refuse.go
//	where does an attempt reach it                                gateway.go (Serve, Listen)
//	how is the key kept out of an agent's answers                 upstream.go send, ../secret
//	how is JSON read                                              request.go (parsed)
package gateway
