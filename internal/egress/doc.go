// Package egress is the only way out of a sandbox with its own network: an HTTP proxy on the host that lets
// programs reach the names on a list, at the listed ports, and nothing else.
//
// A name has one form, in which it is judged and dialled; the host resolves it after it was judged. Each address is
// checked right before the connection. Private networks, this machine and a cloud's metadata are refused, unless
// the operator names the network. A CONNECT tunnel must be TLS for CONNECT's name. Plain HTTP is judged per
// request.
//
// A tunnel hides the method, path and Host header inside: programs that may reach a host may also upload to it, and
// to everything that shares its certificate's front.
//
//	../../policy/host.go  names and rules
//	egress.go             refusals and traffic
//	address.go            refused addresses
//	tunnel.go             the server name in TLS
//	clients.go            programs' proxy variables
package egress
