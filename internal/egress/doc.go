// Package egress is the one way out of a sandbox that has a network of its own: an HTTP proxy of the host that lets
// programs reach the names on a list, at the listed ports, and nothing else.
//
// A name has one form, is judged in that form, and is dialled in that form; it is resolved here, by the host, after it
// was judged. Each address that it leads to is judged right before the connection is made: none of a private network,
// of this machine or of a cloud's metadata, unless the operator names the network. What goes through CONNECT must be
// TLS for the very name that CONNECT gave. Plain HTTP is judged request by request.
//
// A tunnel shows no method, no path and no Host header of what is inside: whoever may reach a host may also upload to
// it, and to whatever shares its certificate's front.
//
//	question                                             file
//	what is a name, and which one may be reached         ../../policy/host.go
//	what answers a refused request                       egress.go
//	what is counted, and what is told of refusals        egress.go
//	which addresses are refused                          address.go
//	is it the right name in a tunnel's TLS               tunnel.go
//	how do programs find the proxy                       clients.go
package egress
